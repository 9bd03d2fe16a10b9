"""The sample becomes a new vector, and f(x) becomes equal to the sample's label, apart from the effect of the ridge."""

from pykernel.algorithms.online.state import OnlineModel
from pykernel.dialect import kernel, real


@kernel
def propose_interpolation(m: OnlineModel) -> None:
    """Propose alpha - u e / kappa for the vectors and e / kappa for the sample, where e is the error.  O(N).

    With these multipliers, f(x) = y, apart from the effect of the ridge, and f changes as little as possible.
    If alpha = P y holds for the old multipliers, it also holds for the new multipliers.
    Van Vaerenbergh et al. 2010, and Engel et al. 2004, eq. 3.16.
    """
    n = m.n[0]
    for o in range(len(m.error)):
        step = m.error[o] * (real(1) / m.kappa[0])
        m.beta[n, o] = step
        for i in range(n):
            m.beta[i, o] = m.alpha[i, o] - m.u[i] * step
