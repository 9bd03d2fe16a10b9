"""A small program whose vectors are a table in flash: what it learns are their multipliers, each within its own bound."""

# ruff: noqa: SIM110 — in the dialect `for` has no substitutes
from pykernel.algorithms.extents import N_MAX
from pykernel.dialect import DIM, OUTPUTS, Bool, Config, Index, Real, Struct, absolute, kernel, real
from pykernel.dialect.program import Entry, Program
from pykernel.spec.model import Spec
from pykernel.spec.sections import Learning, Section
from tests.support.toys import ToyStatus


class Frozen(Struct):
    """Multipliers of fixed vectors."""

    alpha: Real[N_MAX]
    count: Index  # samples learned


class TableConfig(Config):
    shows_spare: bool
    basis: Real[N_MAX, DIM]  # the vectors
    order: Index[N_MAX]  # in which they are summed
    bounds: Real[N_MAX]  # of the multipliers, which only a restored state is checked with
    spare: Real[DIM]  # read only where the choice says so
    max_abs: Real


@kernel
def frozen_dot(row: Real[...], x: Real[...], n: Index) -> Real:
    """row'x."""
    total = real(0)
    for j in range(n):
        total += row[j] * x[j]
    return total


@kernel
def frozen_sum(s: Frozen, c: TableConfig, x: Real[DIM]) -> Real:
    """f(x)."""
    total = real(0)
    for i in range(len(c.basis)):
        k = c.order[i]
        total += s.alpha[k] * frozen_dot(c.basis[k], x, len(x))
    if c.shows_spare:
        total += frozen_dot(c.spare, x, len(c.basis[0]))
    return total


@kernel
def frozen_within(c: TableConfig, x: Real[DIM]) -> Bool:
    """Whether every input is a number within its limit."""
    for j in range(len(x)):
        if not (absolute(x[j]) <= c.max_abs):
            return False
    return True


@kernel
def frozen_predict(s: Frozen, c: TableConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Write f(x) to y: DONE, or REFUSED_INPUT with y unchanged."""
    if not frozen_within(c, x):
        return ToyStatus.REFUSED_INPUT
    y[0] = frozen_sum(s, c, x)
    return ToyStatus.DONE


@kernel
def frozen_update(s: Frozen, c: TableConfig, x: Real[DIM], y: Real) -> Index:
    """Learn that f(x) should be y."""
    if not frozen_within(c, x):
        return ToyStatus.REFUSED_INPUT
    if not (absolute(y) <= c.max_abs):
        return ToyStatus.REFUSED_LABEL
    error = y - frozen_sum(s, c, x)
    for i in range(len(s.alpha)):
        value = s.alpha[i] + real(0.01) * error * c.basis[i, 0] * x[0]
        if absolute(value) <= real(1):
            s.alpha[i] = value
    if s.count[0] < 1000:
        s.count[0] += 1
    return ToyStatus.LEARNED


@kernel
def frozen_valid(s: Frozen, c: TableConfig) -> Bool:
    """Whether learning could have led to this state."""
    if s.count[0] < 0 or s.count[0] > 1000:
        return False
    for i in range(len(s.alpha)):
        if not (absolute(s.alpha[i]) <= c.bounds[i]):
            return False
    return True


FROZEN = Program(
    name="frozen",
    structs=(Frozen,),
    persistent=(Frozen,),
    configs=(TableConfig,),
    statuses=(ToyStatus,),
    entries=(Entry("predict", frozen_predict, "question"), Entry("update", frozen_update, "update")),
    valid=frozen_valid,
)
BASIS = [[0.1, -2.0], [1.0, 0.25], [1 / 3, 1e-3]]
BOUNDS = [1.0, 1.0, 1.5]


class FrozenFamily:
    """What a spec wants to know; the spec's rho is a number of the basis, force is a choice."""

    rules = {"klms": "kernel"}  # noqa: RUF012
    programs = {"real": FROZEN}  # noqa: RUF012

    def validate(self, spec, refuse):
        pass

    def capacities(self, spec):
        return {"DIM": 2, "N_MAX": 3, "OUTPUTS": 1}

    def parameters(self, spec):
        return {
            "shows_spare": spec.reduction.force,
            "basis": [[spec.learning.rho, -2.0], *BASIS[1:]],
            "order": [2, 0, 1],
            "bounds": BOUNDS,
            "spare": [0.5, 7.0],
            "max_abs": 100.0,
        }


class TableLearning(Learning):
    rule: str = "klms"
    rho: float = 0.0


class TableReduction(Section):
    force: bool = False


class FrozenSpec(Spec):
    """A spec of this program."""

    learning: TableLearning = TableLearning()
    reduction: TableReduction = TableReduction()

    @property
    def family(self):
        return FrozenFamily()


def frozen_spec(precision="float32", rho=0.1, spare=False):
    content = {"name": "ice", "precision": precision, "input": {"dim": 2}, "learning": {"rho": rho}}
    return FrozenSpec.model_validate(content | {"reduction": {"force": spare}})
