"""KLMS and QKLMS in integers, under a budget and without a matrix.

The rules, the removals and their order are those of ``pykernel.algorithms.online`` for the techniques nt, at, fklms and
fmklms.  A division is needed only when the multiplier of a removed vector is distributed over the other
vectors.  Multipliers saturate.  The range of multipliers is much larger than that of labels, so only a diverging model comes
near its limits.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.frame import Status, refusal
from pykernel.algorithms.int16.arithmetic import clip, part_of, places, size
from pykernel.algorithms.int16.frame import INT16, VALUE_MOST, Int16Framed, hear
from pykernel.algorithms.int16.kernels import ONE, Int16KernelConfig, distance, kernel_value
from pykernel.algorithms.online import reduction
from pykernel.algorithms.online.reduction import precedes
from pykernel.algorithms.online.state import (
    AGE_MOST,
    SEARCHES,
    Metric,
    OnlineModel,
    OnlineStatus,
    Projection,
    Tie,
    intact,
)
from pykernel.algorithms.rule import Rule, programs
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Index,
    Int,
    Int16,
    Struct,
    Uint16,
    Word,
    as_signed,
    between,
    floor_shift,
    index,
    kernel,
    multiply_high,
    quotient,
    word,
)
from pykernel.dialect.program import Budget, Entry

FAR = 2147483647
"""The squared distance if there is no neighbour; all real distances are smaller."""


class Int16Expansion(Struct):
    """The model is f(x) = sum_i alpha_i k(v_i, x).  The expansion vectors v_i are samples that the model stores."""

    alpha: between(Int[N_MAX, OUTPUTS], "-alpha_most", "alpha_most")  # multipliers of the expansion vectors
    # each vector's squared distance to its nearest neighbour; a value d <= 0 means that the distance is at least |d|
    neighbour: between(Int[N_MAX], -FAR, FAR)
    # number of samples learned since the vector was stored or last absorbed a sample
    age: between(Index[N_MAX], 0, AGE_MOST)
    n: between(Int16, 0, N_MAX)  # number of expansion vectors in use; the unused places are zero
    v: between(Int16[N_MAX, DIM], "-reach", "reach")  # expansion vectors


class Int16Learning(Struct):
    """Intermediate results, which every call recomputes; they may be zero at first."""

    f: Word[OUTPUTS]  # f(x), modulo 2^32, because intermediate sums may exceed int32
    step: between(Int[OUTPUTS], "-alpha_most", "alpha_most")  # the sample's multipliers
    score: Int[N_MAX + 1]  # costs of the candidates for removal
    distance: between(Int[N_MAX], 0, FAR)  # squared distances from the sample to the expansion vectors
    nearest_distance: between(Int, 0, FAR)
    nearest: between(Int16, 0, N_MAX - 1)  # position of the nearest expansion vector
    k: Uint16[N_MAX]  # kernel values between the sample and the expansion vectors
    row: Uint16[N_MAX]  # kernel values between a removed vector and the other vectors


class Int16OnlineConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.int16_online``."""

    quantises: bool  # QKLMS: whether the nearest vector v gets the sample's whole multiplier, not only k(v, x) times this multiplier
    metric: Metric
    projection: Projection
    tie: Tie
    decays: bool  # whether multipliers decay
    limits_step: bool  # whether the multiplier of a new sample is limited
    keeps_neighbours: bool  # whether distances to nearest neighbours are kept
    keeps_ages: bool  # whether ages are kept
    eta: Index  # learning rate, in units of 2^-16
    keep: Index  # each update multiplies all multipliers by this factor, in units of 2^-16
    alpha_most: Index  # largest |alpha|
    step_limit: Index  # largest |alpha| of a new sample
    ald_distance: Index  # a sample is not stored if its squared distance to an expansion vector is at most this

    tunable = frozenset("""tie decays limits_step eta keep step_limit ald_distance""".split())


class Int16OnlineModel(Int16Framed):
    parts = Int16Expansion, Int16Learning, Int16OnlineConfig, Int16KernelConfig


# ------------------------------------------------------------------------------------------------- candidates


@kernel
def multiplier(m: Int16OnlineModel, i: Index, o: Index) -> Int:
    """alpha_i, clipped to its limit, because memory may have been overwritten."""
    return clip(m.alpha[i, o], -m.alpha_most, m.alpha_most)


@kernel
def magnitude(m: Int16OnlineModel, i: Index) -> Int:
    """The largest |alpha_i| of a candidate, over all outputs.  Candidate n is the sample that is being learned."""
    largest = size(multiplier(m, i, 0)) if i < m.n[0] else size(m.step[0])
    for o in range(1, len(m.step)):
        a = size(multiplier(m, i, o)) if i < m.n[0] else size(m.step[o])
        if a > largest:
            largest = a
    return largest


@kernel
def age_of(m: Int16OnlineModel, i: Index) -> Index:
    """Number of samples learned since a candidate was stored or last absorbed a sample; -1 for the sample that is being learned."""
    return m.age[i] if i < m.n[0] else -1


@kernel
def isolation(m: Int16OnlineModel, i: Index) -> Int:
    """Squared distance from a candidate to its nearest neighbour, or a lower bound on this distance."""
    if i >= m.n[0]:
        return m.nearest_distance[0]
    bound = size(m.neighbour[i])
    return bound if bound < m.distance[i] else m.distance[i]


@kernel
def unsure(m: Int16OnlineModel, i: Index) -> Bool:
    """Whether isolation() is only a lower bound."""
    return i < m.n[0] and m.neighbour[i] <= 0 and m.distance[i] > -m.neighbour[i]


@kernel
def weighted_isolation(m: Int16OnlineModel, i: Index, coarse: Index) -> Int:
    """(alpha_i / 2^coarse)^2 (1 - max_j k_ij), or a lower bound on this cost.  Mitchinson et al. 2003, eq. 18."""
    a = floor_shift(magnitude(m, i), coarse)
    a = a if a < 32767 else 32767
    return multiply_high(a * a, ONE - kernel_value(m, word(isolation(m, i))))


@kernel
def coarseness(m: Int16OnlineModel) -> Index:
    """A c for which the square of every alpha_i / 2^c fits in 32 bits."""
    largest = 0
    count = m.n[0] + 1
    for i in range(count):
        a = magnitude(m, i)
        if a > largest:
            largest = a
    bits = places(word(largest))
    return bits - 14 if bits > 14 else 0


@kernel
def survey(m: Int16OnlineModel) -> Index:
    """For fmklms, compute the candidates' costs from the multipliers divided by 2^c.  Returns c.  O(N)."""
    if m.metric != Metric.FMKLMS:
        return 0
    coarse = coarseness(m)
    count = m.n[0] + 1
    for i in range(count):
        m.score[i] = weighted_isolation(m, i, coarse)
    return coarse


@kernel
def cost(m: Int16OnlineModel, i: Index) -> Int:
    """The cost of removing a candidate.  survey() must be called first.  Mitchinson et al. 2003, section 2."""
    if m.metric == Metric.MAGNITUDE:
        return magnitude(m, i)
    if m.metric == Metric.FMKLMS:
        return m.score[i]
    if m.metric == Metric.FKLMS:
        return isolation(m, i)
    return 0  # all costs are equal, so precedes() compares ages


@kernel
def find_neighbour(m: Int16OnlineModel, i: Index) -> None:
    """Compute the distance from expansion vector i to its nearest neighbour.  O(N D)."""
    nearest = FAR
    for j in range(m.n[0]):
        if j != i:
            d = index(distance(m, m.v[i], m.v[j]))
            if d < nearest:
                nearest = d
    m.neighbour[i] = nearest


@kernel
def choose(m: Int16OnlineModel) -> Index:
    """The candidate with the lowest cost: a stored vector, or n for the sample.  Ties are decided by precedes(), then by position.

    A cost that is computed from a lower bound is itself a lower bound.  If a candidate with such a cost could be the cheapest, its
    exact distance to its nearest neighbour is searched for.  After SEARCHES searches, only candidates with exact costs are
    considered.  O(N), and O(N D) for each search.
    """
    coarse = survey(m)
    n = m.n[0]
    r = n
    for turn in range(SEARCHES + 1 if m.keeps_neighbours else 1):
        r = n
        least = cost(m, n)
        lost = n
        bound = least
        for i in range(n):
            value = cost(m, i)
            if value <= least:
                guess = m.keeps_neighbours and unsure(m, i)
                if guess:
                    if value <= bound:
                        bound = value
                        lost = i
                elif value < least or precedes(m, i, r) or (r == n and not precedes(m, r, i)):
                    least = value
                    r = i
        if lost >= n or bound > least or turn == SEARCHES:
            break
        find_neighbour(m, lost)
        if m.metric == Metric.FMKLMS:
            m.score[lost] = weighted_isolation(m, lost, coarse)
    return r


# ------------------------------------------------------------------------------------------- storing, removing


@kernel
def measure_row(m: Int16OnlineModel, r: Index) -> None:
    """Compute the kernel values between stored vector r and the other vectors.  If r was the nearest neighbour of another
    vector, the distance stored for that vector becomes a lower bound.  O(N D)."""
    for i in range(m.n[0]):
        d = distance(m, m.v[i], m.v[r])
        if m.projection != Projection.NONE:
            m.row[i] = kernel_value(m, d)
        if m.keeps_neighbours and i != r and m.neighbour[i] == index(d):
            m.neighbour[i] = -index(d)


@kernel
def project(m: Int16OnlineModel, r: Index) -> None:
    """Distribute candidate r's multiplier: add k_ir alpha_r to each alpha_i, as if the other vectors were orthogonal.  O(N).

    Mitchinson et al. 2003, eq. 16.  With the "bounded" projection, each k_ir is divided by the sum of all k_ir if this sum is above 1.
    """
    n = m.n[0]
    part = ONE
    if m.projection == Projection.BOUNDED:
        total = 0
        for i in range(n):
            if i != r:
                total += m.row[i] if r < n else m.k[i]
        if r < n:
            total += m.k[r]
        # 2^32 / total
        if total > ONE:
            part = quotient(1073741824, floor_shift(total, 2))
            part = part if part < ONE else ONE
    for o in range(len(m.step)):
        a = part_of(multiplier(m, r, o) if r < n else m.step[o], part)
        for i in range(n):
            if i != r:
                moved = multiplier(m, i, o) + part_of(a, m.row[i] if r < n else m.k[i])
                m.alpha[i, o] = clip(moved, -m.alpha_most, m.alpha_most)
        if r < n:
            m.step[o] = clip(m.step[o] + part_of(a, m.k[r]), -m.alpha_most, m.alpha_most)


@kernel
def put_in(m: Int16OnlineModel, r: Index) -> None:
    """Store the sample as vector r.  n already includes this vector.  O(N + D)."""
    for j in range(len(m.x)):
        m.v[r, j] = m.x[j]
    for o in range(len(m.step)):
        m.alpha[r, o] = m.step[o]
    m.age[r] = 0
    if m.keeps_neighbours:
        nearest = FAR
        for j in range(m.n[0]):
            if j != r:
                d = m.distance[j]
                nearest = d if d < nearest else nearest
                if d <= size(m.neighbour[j]):
                    m.neighbour[j] = d
        m.neighbour[r] = nearest


@kernel
def grow_older(m: Int16OnlineModel) -> None:
    """Increase the age of each vector by 1, because a sample is learned."""
    if m.keeps_ages:
        for i in range(m.n[0]):
            if m.age[i] < AGE_MOST:
                m.age[i] += 1


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def present(m: Int16OnlineModel) -> Int:
    """Compute f(x), and the distances and kernel values for the update that follows.  With a single output, f(x) is returned; with
    several, it is written to m.f.  O(N D)."""
    nearest = 0
    nearest_distance = FAR
    total = word(0)
    if not m.single:
        for o in range(len(m.f)):
            m.f[o] = word(0)
    for i in range(m.n[0]):
        d = distance(m, m.v[i], m.x)
        apart = index(d)
        value = kernel_value(m, d)
        m.distance[i] = apart
        m.k[i] = value
        if m.single:
            total += word(multiply_high(m.alpha[i, 0], value))
        else:
            for o in range(len(m.f)):
                m.f[o] += word(multiply_high(m.alpha[i, o], value))
        if apart < nearest_distance:
            nearest_distance = apart
            nearest = i
    m.nearest[0] = nearest
    m.nearest_distance[0] = nearest_distance
    return as_signed(total)


@kernel
def value_of(m: Int16OnlineModel, total: Int, o: Index) -> Int:
    """f(x), clipped to VALUE_MOST, which a valid model never exceeds."""
    return clip(total if m.single else as_signed(m.f[o]), -VALUE_MOST, VALUE_MOST)


@kernel
def absorb(m: Int16OnlineModel) -> Index:
    """Learn a sample without storing it: change the multiplier of the nearest vector.  O(N)."""
    i = m.nearest[0]
    share_of = ONE
    if not m.quantises:
        share_of = kernel_value(m, word(m.nearest_distance[0]))
    for o in range(len(m.step)):
        m.alpha[i, o] = clip(multiplier(m, i, o) + part_of(m.step[o], share_of), -m.alpha_most, m.alpha_most)
    grow_older(m)
    m.age[i] = 0
    return OnlineStatus.ABSORBED if m.nearest_distance[0] > 0 else OnlineStatus.MERGED


@kernel
def insert(m: Int16OnlineModel) -> Index:
    """Learn a sample as a new vector; if the budget is full, remove a vector.  O(N D)."""
    n = m.n[0]
    # r: the vector to remove; n means the sample itself, and n + 1 means that no vector is removed
    r = n + 1
    if n == len(m.v):
        r = choose(m)
        if r < n:
            measure_row(m, r)
        if m.projection != Projection.NONE:
            project(m, r)
    grow_older(m)
    if r == n:
        return OnlineStatus.DISCARDED
    if r < n:
        put_in(m, r)
        return OnlineStatus.REPLACED
    if n < len(m.v):
        m.n[0] = n + 1
        put_in(m, n)
    return OnlineStatus.ADDED


@kernel
def learn(m: Int16OnlineModel, x: Int16[DIM]) -> Index:
    """Learn the sample, then reduce the model to its budget.  Mitchinson et al. 2003, eq. 2-6."""
    total = present(m)
    for o in range(len(m.error)):
        m.error[o] = value_of(m, total, o)
    hear(m)
    for o in range(len(m.step)):
        # eq. 2
        step = clip(part_of(m.error[o], m.eta), -m.alpha_most, m.alpha_most)
        m.step[o] = clip(step, -m.step_limit, m.step_limit) if m.limits_step else step
    if m.decays:
        # eq. 5
        for i in range(m.n[0]):
            for o in range(len(m.step)):
                m.alpha[i, o] = part_of(multiplier(m, i, o), m.keep)
    if m.n[0] > 0 and m.nearest_distance[0] <= m.ald_distance:
        return absorb(m)
    return insert(m)


# ------------------------------------------------------------------------------------------------------- asking


@kernel
def evaluate(m: Int16OnlineModel) -> Int:
    """f(x) of a single output; with several outputs, f(x) is written to m.f instead.  O(N D)."""
    total = word(0)
    if not m.single:
        for o in range(len(m.f)):
            m.f[o] = word(0)
    for i in range(m.n[0]):
        value = kernel_value(m, distance(m, m.v[i], m.x))
        if m.single:
            total += word(multiply_high(m.alpha[i, 0], value))
        else:
            for o in range(len(m.f)):
                m.f[o] += word(multiply_high(m.alpha[i, o], value))
    return as_signed(total)


@kernel
def answer(m: Int16OnlineModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = f(x).  O(N D)."""
    total = evaluate(m)
    for o in range(len(y)):
        y[o] = value_of(m, total, o)


@kernel
def novelty(
    m: Int16OnlineModel,
    x: Int16[DIM],
    y: Int[1],
) -> Index:
    """Write the novelty of x to y: 1 - k(v, x)^2 for the nearest vector v, in units of 1 / 65535.  O(N D).

    Returns DONE, or REFUSED_INPUT or REFUSED_STATE with y unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    nearest = FAR
    for i in range(m.n[0]):
        d = index(distance(m, m.v[i], m.x))
        nearest = d if d < nearest else nearest
    k = kernel_value(m, word(nearest)) if m.n[0] > 0 else 0
    y[0] = ONE - multiply_high(k + floor_shift(k, 15), k)
    return Status.DONE


@kernel
def keeps(m: Int16OnlineModel) -> Bool:
    """Whether learning could have led to this state.  Unused places must be zero.  The declared ranges are checked
    elsewhere."""
    n = m.n[0]
    for i in range(len(m.v)):
        for j in range(len(m.v[0])):
            if i >= n and m.v[i, j] != 0:
                return False
        for o in range(len(m.alpha[0])):
            if i >= n and m.alpha[i, o] != 0:
                return False
        if m.keeps_ages and i >= n and m.age[i] != 0:
            return False
        if m.keeps_neighbours and i >= n and m.neighbour[i] != 0:
            return False
    return True


INT16_ONLINE = programs(
    Rule(
        name="online",
        model=Int16OnlineModel,
        memory=(Int16Expansion,),
        work=(Int16Learning,),
        configs=(Int16OnlineConfig, Int16KernelConfig),
        statuses=OnlineStatus,
        hooks={
            frame.answer: answer,
            frame.learn: learn,
            frame.intact: intact,
            frame.keeps: keeps,
            OnlineModel: Int16OnlineModel,
            reduction.magnitude: magnitude,
            reduction.age_of: age_of,
        },
        costs=("O(N D)", "O(N D)"),
        budget=Budget("N_MAX"),
        questions=(Entry("novelty", novelty, "question"),),
        stand_ins=INT16,
    )
)
