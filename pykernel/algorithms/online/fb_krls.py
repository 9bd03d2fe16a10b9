"""FB-KRLS and SW-KRLS, least squares on the stored samples.

S. Van Vaerenbergh, I. Santamaria, W. Liu, J. C. Principe, Fixed-budget kernel recursive least-squares, 2010.
The function f interpolates the labels of the vectors, apart from the effect of the ridge.  A sample that is not stored
changes the label of the nearest vector.  With ``relabels``, every sample changes the labels of all vectors, and those
of nearer vectors more.  If each sample replaces the oldest vector, the vectors are a sliding window: S. Van
Vaerenbergh, J. Via, I. Santamaria, A sliding-window kernel RLS algorithm, 2006.
"""

from pykernel.algorithms.online import hooks
from pykernel.algorithms.online.budget import budgeted
from pykernel.algorithms.online.interpolation import propose_interpolation
from pykernel.algorithms.online.inverse_gram import inverse_column
from pykernel.algorithms.online.state import OnlineModel
from pykernel.dialect import Bool, kernel, real


@kernel
def absorb_as_label(m: OnlineModel) -> None:
    """Change the label of the nearest vector by eta e: alpha + P_:nearest eta e.  O(N^2).

    The vectors' labels y are not stored, but alpha = P y contains them.
    """
    n = m.n[0]
    inverse_column(m, m.nearest[0])
    for o in range(len(m.error)):
        g = m.eta * m.error[o]
        if not m.radial:
            # the change is proportional to the similarity of the vector and the sample
            g = m.k[m.nearest[0]] * g
        for i in range(n):
            m.beta[i, o] = m.alpha[i, o] + m.p[i] * g


@kernel
def move_labels(m: OnlineModel) -> None:
    """Change the label of each stored vector by eta k_i e, which is larger for nearer vectors: alpha + eta e u.  O(N).

    Van Vaerenbergh et al. 2010 change labels by eta k_i (y - y_i), even if f is already right at the sample and at the vector.
    """
    for o in range(len(m.error)):
        g = m.eta * m.error[o]
        for i in range(m.n[0]):
            m.beta[i, o] = m.alpha[i, o] + m.u[i] * g


@kernel
def propose_labels(m: OnlineModel) -> None:
    """Change the labels, which reduces the error to (1 - eta k'u) e; then propose multipliers for which f(x) = y.  O(N)."""
    move_labels(m)
    rest = real(1) - m.eta * (m.ridge_diagonal - m.kappa[0])
    for o in range(len(m.error)):
        step = m.error[o] * rest * (real(1) / m.kappa[0])
        m.beta[m.n[0], o] = step
        for i in range(m.n[0]):
            m.beta[i, o] -= m.u[i] * step


@kernel
def propose(m: OnlineModel) -> None:
    """Propose multipliers for which f(x) = y.  If the rule relabels, first change the labels near the sample.  O(N)."""
    if m.relabels:
        propose_labels(m)
    else:
        propose_interpolation(m)


@kernel
def adapt(m: OnlineModel, close: Bool) -> Bool:
    """Change the labels of stored vectors.  O(N^2)."""
    if m.relabels:
        move_labels(m)
    else:
        absorb_as_label(m)
    return True


FB_KRLS = budgeted(
    {hooks.propose: propose, hooks.adapt: adapt, hooks.solves: hooks.always, hooks.spreads: hooks.always}
)
