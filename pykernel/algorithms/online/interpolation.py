"""The sample becomes a new vector, and f(x) becomes equal to the sample's label."""

from pykernel.algorithms.online.state import OnlineModel
from pykernel.dialect import kernel, real


@kernel
def propose_interpolation(m: OnlineModel) -> None:
    """Propose the multipliers for which f(x) = y and f changes as little as possible: [alpha - u e / kappa; e / kappa].  O(N).

    If alpha = P y holds for the old multipliers, it also holds for the new multipliers.
    Van Vaerenbergh et al. 2010, and Engel et al. 2004, eq. 3.16.
    """
    n = m.n[0]
    for o in range(len(m.error)):
        step = m.error[o] * (real(1) / m.kappa[0])
        m.beta[n, o] = step
        for i in range(n):
            m.beta[i, o] = m.alpha[i, o] - m.u[i] * step
