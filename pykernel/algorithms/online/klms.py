"""KLMS, stochastic gradient descent on the squared error of a kernel expansion, and its variant QKLMS.

D. Mitchinson et al. 2003, equations 2 to 6: each sample becomes a vector with multiplier eta e, where e is the error,
and the other multipliers are multiplied by 1 - eta rho.  B. Chen, S. Zhao, P. Zhu, J. C. Principe, Quantized kernel
least mean square algorithm, 2012: a sample near a vector is not stored, but changes the multiplier of that vector.
"""

from pykernel.algorithms.kernel_choice import KernelFunction
from pykernel.algorithms.kernels import gaussian
from pykernel.algorithms.online import hooks
from pykernel.algorithms.online.budget import budgeted
from pykernel.algorithms.online.gradient import adapt_gradient, propose_gradient
from pykernel.algorithms.online.state import OnlineModel
from pykernel.dialect import Real, kernel, real


@kernel
def similarity(m: OnlineModel) -> Real:
    """KLMS: the share of the sample's multiplier that the nearest vector gets is the similarity of sample and vector."""
    if m.function != KernelFunction.GAUSSIAN:
        if not m.radial:
            return m.k[m.nearest[0]]
        return real(1) - m.nearest_distance[0]
    return gaussian(m.gamma, m.nearest_distance[0])


@kernel
def quantised(m: OnlineModel) -> Real:
    """QKLMS: the nearest vector gets the sample's whole multiplier or, if the kernel is not radial, the same share as in KLMS.
    Chen et al. 2012."""
    if m.function != KernelFunction.GAUSSIAN:
        if not m.radial:
            return m.k[m.nearest[0]]
    return real(1)


KLMS = budgeted({hooks.propose: propose_gradient, hooks.adapt: adapt_gradient, hooks.share_of_nearest: similarity})
QKLMS = budgeted({hooks.propose: propose_gradient, hooks.adapt: adapt_gradient, hooks.share_of_nearest: quantised})
