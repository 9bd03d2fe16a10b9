"""Learning sample by sample under a hard budget: the parts that all rules share (Mitchinson et al. 2003, sections 2 and 3)."""

from collections.abc import Mapping

from pykernel.algorithms import frame
from pykernel.algorithms.doubt import DoubtStatus
from pykernel.algorithms.frame import Status, begin_anew, hear, refusal, see, strays
from pykernel.algorithms.kernel_choice import KernelConfig, KernelFunction
from pykernel.algorithms.kernels import gaussian
from pykernel.algorithms.online.candidates import commit, largest_step, only_grows, stand_alone, step_bearable
from pykernel.algorithms.online.complex_inverse import ASTRAY, MOST_WRONG, border_complex, column_error, express_complex
from pykernel.algorithms.online.hooks import (
    adapt,
    assimilate,
    combines,
    fills,
    outcome,
    propose,
    renewed,
    solves,
    sound,
    spreads,
)
from pykernel.algorithms.online.inverse_gram import (
    belongs,
    border,
    border_inverse,
    border_squared,
    combination,
    express,
)
from pykernel.algorithms.online.neighbours import renew_overlap
from pykernel.algorithms.online.projections import bearable, locate, project
from pykernel.algorithms.online.reduction import (
    append,
    choose,
    close_gap,
    grow_older,
    keeps_order,
    negligible,
    put_in,
    take_out,
)
from pykernel.algorithms.online.state import (
    Expansion,
    OnlineConfig,
    OnlineModel,
    OnlineStatus,
    Work,
    alike_stored,
    expand,
    intact,
    measure,
    present,
)
from pykernel.algorithms.online.truncation import stale, trim
from pykernel.algorithms.online.validity import keeps
from pykernel.algorithms.rule import Rule, programs
from pykernel.dialect import DIM, Bool, Index, Kernel, Real, Struct, kernel, real
from pykernel.dialect.program import Budget, Entry, OnHost, Programs

# ---------------------------------------------------------------------------------------------------- questions


@kernel
def compare(m: OnlineModel, x: Real[DIM]) -> None:
    """Compute the distances and kernel values between x and the expansion vectors.  [keeps_factor] Also compute kappa,
    the part of x outside the span of these vectors."""
    if m.scales:
        see(m, x)
        if m.keeps_diagonal:
            measure(m, m.x)
        present(m, m.x)
    else:
        if m.keeps_diagonal:
            measure(m, x)
        present(m, x)
    if m.keeps_factor:
        express(m, m.n[0])


@kernel
def novelty(m: OnlineModel, x: Real[DIM], y: Real[1]) -> Index:
    """Write the novelty of x to y: in the kernel's feature space, the squared norm of the part of x that is outside the
    span of the expansion vectors.

    [keeps_factor] The novelty is kappa = 1 + ridge - k' P k, computed in O(N^2 + N D).  [not keeps_factor] The novelty is
    1 - k^2 for the nearest vector, computed in O(N D).
    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    compare(m, x)
    if m.keeps_factor:
        y[0] = m.kappa[0]
    elif m.function != KernelFunction.GAUSSIAN:
        # 1 - k^2, from the distance 1 - |k|
        y[0] = m.nearest_distance[0] * (real(2) - m.nearest_distance[0])
    else:
        nearest = real(0)
        if m.n[0] > 0:
            nearest = gaussian(m.gamma, m.nearest_distance[0])
        y[0] = real(1) - nearest * nearest
    if m.keeps_diagonal:
        if m.norm[0] == real(0):
            y[0] = real(0)
    return Status.DONE


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def absorb(m: OnlineModel, close: Bool) -> Index:
    """Learn a sample without storing it, by changing multipliers.  [not keeps_factor] O(N).  [keeps_factor] O(N^2)."""
    fits = adapt(m, close)
    if not fits or not bearable(m, m.n[0]):
        return DoubtStatus.RESTARTED
    commit(m)
    if not m.drafts:
        for o in range(len(m.error)):
            m.alpha[m.nearest[0], o] = m.step[o]
    assimilate(m, False)
    grow_older(m)
    if m.keeps_ages and close:
        m.age[m.nearest[0]] = 0
    return outcome(m, close)


@kernel
def insert(m: OnlineModel, x: Real[DIM]) -> Index:
    """Learn a sample as a new vector.  If the budget is full, remove a vector, which may be the new one.
    [not keeps_factor] O(N D).  [keeps_factor] O(N^2 + N D)."""
    n = m.n[0]
    full = not fills(m) and n == len(m.v)
    propose(m)
    if not step_bearable(m):
        return DoubtStatus.RESTARTED
    # r is the vector to remove: n means the sample itself, n + 1 means that no vector is removed
    r = n + 1
    fits = True
    dropped = False
    if m.truncates_small:
        if largest_step(m) < m.truncate_below:
            r = n
            dropped = True
    if m.truncates_old or m.truncates_small:
        if full and not dropped:
            r = stale(m, 1)
            if r < n:
                locate(m, r)
                dropped = True
    if not dropped and (full or m.thresholds):
        r = choose(m)
        if m.thresholds:
            if not full and not negligible(m, r):
                r = n + 1
        if r <= n:
            project(m, r)
            if not spreads(m):
                fits = bearable(m, r)
    if spreads(m):
        fits = bearable(m, r)
    if not fits:
        return DoubtStatus.RESTARTED
    commit(m)
    assimilate(m, True)
    grow_older(m)
    if not fills(m) or m.thresholds or m.truncates_old or m.truncates_small:
        if r == n:
            return OnlineStatus.DISCARDED
    if keeps_order(m):
        append(m)
    if not only_grows(m) and r < n:
        take_out(m, r, n + 1)
        if keeps_order(m):
            close_gap(m, r)
            r = n - 1
        put_in(m, x, r, n)
        return OnlineStatus.REPLACED
    put_in(m, x, n, n)
    return OnlineStatus.ADDED


@kernel
def remove_one(m: OnlineModel) -> Index:
    """Remove the stored vector with the smallest cost, without learning a sample.  O(N^2 + N D).

    The configuration must set ``rounds`` and ``drafts``, but not ``newest_only``.  The PC also calls this kernel, to move a
    state into a smaller budget.
    """
    stand_alone(m)
    r = choose(m)
    project(m, r)
    if not bearable(m, r):
        return OnlineStatus.REFUSED_MULTIPLIER
    commit(m)
    take_out(m, r, m.n[0])
    close_gap(m, r)
    return Status.DONE


@kernel
def learn(m: OnlineModel, x: Real[DIM]) -> Index:
    """Learn the sample x with label m.y.  A model that diverges, or has a state that learning cannot reach, is reset."""
    status = attempt(m, x)
    if m.keeps_complex:
        if m.probe[0] == ASTRAY:
            status = DoubtStatus.RESTARTED
        # Z is corrected only when a sample is stored; if the sample is discarded, check one column of Z instead
        i = m.nearest[0]
        if status == OnlineStatus.DISCARDED and i < m.n[0]:
            worst = column_error(m, i)
            if not (worst <= MOST_WRONG):
                status = DoubtStatus.RESTARTED
    if status > 0 and not sound(m):
        return DoubtStatus.RESTARTED
    return status


@kernel
def attempt(m: OnlineModel, x: Real[DIM]) -> Index:
    """Learn the sample x with label m.y, by eq. 2-6 of Mitchinson et al. 2003 or by another rule; then reduce the expansion.

    Returns RESTARTED if the model diverges, or if learning cannot have led to its state; parts of the model may then have changed.
    """
    if m.keeps_diagonal:
        measure(m, x)
        # f(x) is always zero where k(x, x) is zero
        if m.norm[0] == real(0):
            for o in range(len(m.value)):
                m.value[o] = real(0)
            return OnlineStatus.DISCARDED
        # where k(x, x) is near zero, a label within its limit could require a multiplier that is too large
        if not m.unit and not (m.norm[0] * m.alpha_limit >= real(4) * m.label_limit):
            return OnlineStatus.REFUSED_MULTIPLIER
    replaces = False
    if m.before:
        # a full model first loses a vector; then the rule learns the sample with the reduced model (section 3)
        if m.n[0] == len(m.v):
            removed = remove_one(m)
            if removed < 0:
                return DoubtStatus.RESTARTED
            replaces = True
    present(m, x)
    hear(m)
    if m.unit:
        if strays(m, real(1)):
            return DoubtStatus.RESTARTED
    sure = True
    for o in range(len(m.error)):
        sure = sure and m.error[o] == real(0)
    # skip samples that are classified clearly: otherwise least squares would learn less and less from the other samples
    if m.separates and sure:
        if solves(m):
            return OnlineStatus.DISCARDED
    if not m.unit:
        # from here on, learn f(x) / sqrt(k(x, x)) with the normalised kernel
        for o in range(len(m.error)):
            m.error[o] = m.error[o] / m.norm[0]
    close = m.n[0] > 0 and m.nearest_distance[0] <= m.ald_distance
    spanned = False
    if m.keeps_factor:
        express(m, m.n[0])
        if not belongs(m):
            return DoubtStatus.RESTARTED
        if not combines(m):
            combination(m, m.n[0])
        m.inverse_kappa[0] = real(1) / m.kappa[0]
        spanned = m.kappa[0] <= m.ald_threshold
    if fills(m):
        if m.n[0] == len(m.v):
            spanned = True
    if m.keeps_complex:
        express_complex(m, m.n[0])
    if m.rounds:
        m.newest[0] = 1
    status = 0
    if not m.stores_all and (close or spanned):
        status = absorb(m, close)
    else:
        status = insert(m, x)
    if m.truncates_old or m.truncates_small or (m.thresholds and not m.newest_only):
        if status > 0:
            trim(m)
    if m.before:
        if replaces and status == OnlineStatus.ADDED:
            return OnlineStatus.REPLACED
    return status


@kernel
def refresh(m: OnlineModel) -> Index:
    """Recompute the stored matrices from the expansion vectors.  This removes rounding errors.

    O(N^3 + N^2 D).  Predictions change only by the rounding errors that are removed.  If the model has a state
    that learning cannot produce, it is reset.
    """
    if not intact(m):
        return Status.REFUSED_STATE
    for t in range(len(m.v)):
        if t == m.n[0]:
            break
        for i in range(t):
            m.k[i] = alike_stored(m, i, t)
        if m.keeps_factor:
            express(m, t)
            combination(m, t)
            if m.keeps_squared:
                border_squared(m, t)
            if m.keeps_inverse:
                border_inverse(m, t)
            border(m, t)
        if m.keeps_complex:
            express_complex(m, t)
            border_complex(m, t)
        if m.keeps_overlap:
            renew_overlap(m, t)
    fits = renewed(m)
    if not fits:
        begin_anew(m)
        return DoubtStatus.RESTARTED
    return Status.DONE


@kernel
def blank(m: OnlineModel) -> Bool:
    """Whether the model has no vectors."""
    return m.n[0] == 0


def _keeps_matrix(c: OnlineConfig) -> bool:
    return bool(c.keeps_factor or c.keeps_complex or c.keeps_overlap)


def budgeted(
    hooks: Mapping[Kernel, Kernel],
    model: type[OnlineModel] = OnlineModel,
    memory: tuple[type[Struct], ...] = (),
    questions: tuple[Entry, ...] = (),
) -> Programs:
    """Return the programs of a rule that learns under a budget.

    hooks: maps placeholders in ``pykernel.algorithms.online.hooks`` or in the frame to the rule's kernels that replace them.
    model: the rule's model.  memory: the structs that only this rule has.  questions: the entries that only this rule has.
    """
    alone = {"rounds": True, "drafts": True, "newest_only": False}
    return programs(
        Rule(
            name="online",
            model=model,
            memory=(Expansion, *memory),
            work=(Work,),
            configs=(OnlineConfig, KernelConfig),
            statuses=OnlineStatus,
            hooks={
                frame.answer: expand,
                frame.learn: learn,
                frame.intact: intact,
                frame.blank: blank,
                frame.keeps: keeps,
                OnlineModel: model,
                **hooks,
            },
            costs=("O(N D)", "[not keeps_factor] O(N D).  [keeps_factor] O(N^2 + N D)"),
            questions=(Entry("novelty", novelty, "question"), *questions),
            actions=(Entry("refresh", refresh, "action", _keeps_matrix),),
            between=("refresh",),
            budget=Budget("N_MAX") if fills in hooks else Budget("N_MAX", OnHost(remove_one, alone)),
        )
    )
