"""How the other multipliers change to compensate for a removed vector (Mitchinson et al. 2003, section 2).

Each entry of ``PROJECTIONS`` is a projection.  A projection changes beta so that the other vectors replace candidate r.
locate() writes to p and row the intermediate results that take_out() needs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pykernel.algorithms.elementary import bounded
from pykernel.algorithms.kernel_choice import KernelFunction
from pykernel.algorithms.kernels import gaussian
from pykernel.algorithms.online.candidates import candidates, is_stored, only_grows
from pykernel.algorithms.online.complex_inverse import project_lsridge
from pykernel.algorithms.online.hooks import always, never
from pykernel.algorithms.online.inverse_gram import inverse_column, inverse_times
from pykernel.algorithms.online.neighbours import measure_row
from pykernel.algorithms.online.state import SMALLEST_DIAGONAL, OnlineModel, Projection, settle
from pykernel.algorithms.online.techniques import knows_diagonal
from pykernel.dialect import Bool, Index, Kernel, Real, absolute, chosen, kernel, real, sqrt


@kernel
def leave_as_they_are(m: OnlineModel, r: Index) -> None:
    """Change no multipliers."""


@kernel
def project_klms(m: OnlineModel, r: Index) -> None:
    """beta = alpha - P_:r alpha_r / P_rr, where P includes all candidates.  O(N).

    For a stored vector r, p must contain column r of the stored vectors' P.
    Mitchinson et al. 2003, eq. 12.
    """
    n = m.n[0]
    if only_grows(m) or r == n:
        for i in range(n):
            for o in range(len(m.alpha[0])):
                m.beta[i, o] += m.u[i] * m.beta[n, o]
    elif not projects_late(m):
        share = m.u[r] * m.inverse_kappa[0]
        scale = real(1) / (m.p[r] + m.u[r] * share)
        for o in range(len(m.alpha[0])):
            g = m.beta[r, o] * scale
            for i in range(n):
                m.beta[i, o] -= (m.p[i] + m.u[i] * share) * g
            m.beta[n, o] += share * g


@kernel
def projects_late(m: OnlineModel) -> Bool:
    """Whether to project only after the vector is removed from T: P_:r is then known without another product with T."""
    if only_grows(m) or m.rounds or m.before or m.truncates_old or m.truncates_small:
        return False
    if m.projection != Projection.KLMS:
        return False
    return knows_diagonal(m)


@kernel
def project_late(m: OnlineModel, r: Index) -> None:
    """project_klms() for a stored vector.  Needs P_:r in p, where P includes the sample.  bearable() has checked the ranges.  O(N)."""
    scale = real(1) / (m.p[r] if m.p[r] > SMALLEST_DIAGONAL else SMALLEST_DIAGONAL)
    for o in range(len(m.alpha[0])):
        g = m.beta[r, o] * scale
        for i in range(m.n[0]):
            m.alpha[i, o] = settle(bounded(m.beta[i, o] - m.p[i] * g, m.alpha_limit))
        m.beta[m.n[0], o] = bounded(m.beta[m.n[0], o] - m.p[m.n[0]] * g, m.alpha_limit)


@kernel
def bearable(m: OnlineModel, r: Index) -> Bool:
    """Whether every multiplier except that of r is within its range, and will be after project_late().  O(N).

    project_late() changes alpha_i by P_ir alpha_r / P_rr, which is at most sqrt(P_ii / P_rr) |alpha_r|.
    """
    if m.drafts:
        count = candidates(m)
        scale = real(0)
        if projects_late(m):
            if r < m.n[0]:
                scale = real(1) / (m.score[r] if m.score[r] > SMALLEST_DIAGONAL else SMALLEST_DIAGONAL)
        for i in range(count):
            if i != r:
                for o in range(len(m.alpha[0])):
                    most = absolute(m.beta[i, o])
                    if projects_late(m):
                        if r < m.n[0]:
                            most += sqrt(m.score[i] * scale) * absolute(m.beta[r, o])
                    if not (most <= m.alpha_limit):
                        return False
    return True


@kernel
def likeness(m: OnlineModel, i: Index, r: Index) -> Real:
    """k_ir for stored vector i and candidate r.  Needs row."""
    if r == m.n[0]:
        return m.k[i]
    if m.function == KernelFunction.GAUSSIAN:
        return gaussian(m.gamma, m.row[i])
    return m.row[i]


@kernel
def project_fklms(m: OnlineModel, r: Index) -> None:
    """beta = alpha + K_:r alpha_r, as if the other vectors were orthogonal.  Needs row.  O(N).

    Mitchinson et al. 2003, eq. 16.
    """
    n = m.n[0]
    for i in range(n):
        if i != r:
            value = likeness(m, i, r)
            for o in range(len(m.alpha[0])):
                m.beta[i, o] += value * m.beta[r, o]
    if r < n:
        for o in range(len(m.alpha[0])):
            m.beta[n, o] += m.k[r] * m.beta[r, o]


@kernel
def project_bounded(m: OnlineModel, r: Index) -> None:
    """beta = alpha + K_:r alpha_r, where K_:r is divided by the sum of its magnitudes if the sum is above 1.  O(N).

    Mitchinson et al. 2003, eq. 16, treats the other vectors as orthogonal.  If these vectors are close together,
    their shares add up to more than alpha_r, and multipliers grow without limit.  The division prevents this.  Needs row.
    """
    n = m.n[0]
    total = real(0)
    for i in range(n):
        if i != r:
            m.q[i] = likeness(m, i, r)
            total += absolute(m.q[i])
    if r < n:
        # count the newest sample, unless it is stored already and the loop above has counted it
        if not (m.rounds and m.newest[0] == 0):
            total += absolute(m.k[r])
    scale = real(1)
    if total > real(1):
        scale = real(1) / total
    for o in range(len(m.alpha[0])):
        part = m.beta[r, o] * scale
        for i in range(n):
            if i != r:
                m.beta[i, o] += m.q[i] * part
        if r < n:
            m.beta[n, o] += m.k[r] * part


@kernel
def project_ls(m: OnlineModel, r: Index) -> None:
    """beta = alpha - Q_:r alpha_r / Q_rr, where Q = P^2 and P includes all candidates.  O(N^2).

    Mitchinson et al. 2003, eq. 14.
    """
    n = m.n[0]
    # first p = P_:r, then q = P p
    share = -m.inverse_kappa[0]
    if is_stored(m, r):
        share = m.u[r] * m.inverse_kappa[0]
        inverse_column(m, r)
    else:
        for i in range(n):
            m.p[i] = real(0)
    for i in range(n):
        m.p[i] += m.u[i] * share
    m.p[n] = -share
    inverse_times(m, m.p, m.q, n)
    product = -m.p[n]
    for i in range(n):
        product += m.u[i] * m.p[i]
    product = product * m.inverse_kappa[0]
    for i in range(n):
        m.q[i] += m.u[i] * product
    m.q[n] = -product
    scale = real(1) / m.q[r]
    for o in range(len(m.alpha[0])):
        g = m.beta[r, o] * scale
        for i in range(n):
            m.beta[i, o] -= m.q[i] * g
        m.beta[n, o] -= m.q[n] * g


@dataclass(frozen=True)
class ProjectionRule:
    """A projection and its parts.

    says: the effect of the projection, or its equation.  number: the value in ``Projection``.  before, after: the kernels that run
    before and after locate(), which computes ``p`` and ``row``.  row: whether the projection needs ``row``.  keeps: the data that are
    stored in addition to the vectors; see the fields ``keeps_...`` of ``OnlineConfig``.
    """

    name: str
    says: str
    number: Projection
    before: Kernel = leave_as_they_are
    after: Kernel = leave_as_they_are
    row: bool = False
    keeps: tuple[str, ...] = ()


PROJECTIONS = {
    projection.name: projection
    for projection in (
        ProjectionRule(
            "none", "no other multiplier changes, and the contribution of the removed vector is lost", Projection.NONE
        ),
        ProjectionRule(
            "klms",
            "so that the function changes least in the kernel's norm (eq. 12)",
            Projection.KLMS,
            after=project_klms,
            keeps=("factor",),
        ),
        ProjectionRule(
            "fklms",
            "as klms, but as if the other vectors were orthogonal (eq. 16)",
            Projection.FKLMS,
            after=project_fklms,
            row=True,
        ),
        ProjectionRule(
            "ls",
            "so that the sum of the function's squared changes at the vectors is least (eq. 14)",
            Projection.LS,
            before=project_ls,
            keeps=("factor",),
        ),
        ProjectionRule(
            "lsridge", "as ls, with a penalty (eq. 20)", Projection.LSRIDGE, before=project_lsridge, keeps=("complex",)
        ),
        ProjectionRule(
            "bounded",
            "as fklms, but the multipliers added to the other vectors sum to at most the removed multiplier",
            Projection.BOUNDED,
            after=project_bounded,
            row=True,
        ),
    )
}


def _by_projection(of: Callable[[ProjectionRule], Kernel]) -> Callable[[Callable], Kernel]:
    return chosen("projection", {projection.number: of(projection) for projection in PROJECTIONS.values()})


@_by_projection(lambda projection: projection.before)
def project_before(m: OnlineModel, r: Index) -> None:
    """Change ``beta`` before ``p`` and ``row`` are computed."""


@_by_projection(lambda projection: projection.after)
def project_after(m: OnlineModel, r: Index) -> None:
    """Change ``beta`` after ``p`` and ``row`` are computed."""


@_by_projection(lambda projection: always if projection.row else never)
def needs_row(m: OnlineModel) -> Bool:
    """Whether the projection needs the array ``row``."""


@kernel
def locate(m: OnlineModel, r: Index) -> None:
    """Compute the intermediate results that take_out() needs to remove stored vector r.  O(N^2 + N D)."""
    if needs_row(m) or m.keeps_neighbours or m.keeps_overlap:
        measure_row(m, r)
    if m.keeps_factor:
        if not projects_late(m):
            inverse_column(m, r)


@kernel
def project(m: OnlineModel, r: Index) -> None:
    """Change the multipliers in beta so that the other vectors replace candidate r.  The caller must then call bearable().

    Also computes the intermediate results that take_out() needs.
    """
    project_before(m, r)
    if is_stored(m, r):
        locate(m, r)
        if projects_late(m):
            return
    project_after(m, r)
