"""A monitor that learns row by row what is normal for a machine.  It reports deviations, with the sensor and the kind of fault.

A row can be surprising in three ways: it does not follow from the previous row (``course``), no regime has such rows
(``bank``), or a sensor repeats its value.  The surprises under the course and under the bank are measured in units of
their usual spreads.  The level is the largest surprise, smoothed over rows.  There is an alarm if the level is above a
threshold, which is adapted to the wanted alarm rate (``threshold``).  Rows in alarm are usually learned by the
candidate for a new regime, not by the known regimes or the course.  A state that lasts becomes normal.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.elementary import absolute, bounded
from pykernel.algorithms.extents import COMPONENTS
from pykernel.algorithms.frame import Status, TakenStatus, refusal
from pykernel.algorithms.novelty.bank import (
    admit,
    compare_all,
    compare_some,
    compares_early,
    drop_candidate,
    drop_newest,
    fade,
    gather,
    has_room,
    is_strange,
    lend_shape,
    look_around,
    mean_weight,
    normal_regimes,
    renew,
    start_at,
)
from pykernel.algorithms.novelty.blame import accuse, kind_of, shared
from pykernel.algorithms.novelty.course import (
    innovate,
    learn_course,
    pass_on,
    start_course,
    surprise_by_course,
    surprise_of_repeats,
)
from pykernel.algorithms.novelty.state import (
    SCORE_MOST,
    Bank,
    Blame,
    Course,
    GmmConfig,
    GmmModel,
    GmmStatus,
    Presence,
    Sight,
)
from pykernel.algorithms.novelty.threshold import (
    LEVEL_MOST,
    Threshold,
    ThresholdConfig,
    follow_episode,
    is_armed,
    raise_level,
    settles,
    since_alarm,
    teach,
    threshold_of,
    valid_threshold,
)
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.vectors import all_zero, copy
from pykernel.dialect import DIM, Bool, Constant, Index, Real, kernel, real, sqrt
from pykernel.dialect.program import Entry

REPEATS_SHARE = Constant(0.5)
"""Weight of the surprise of repeats, in nats, relative to the other two surprises, which are in units of their usual spreads."""
LEAST_WEIGHT = Constant(2.0**-12)
LEAST_WIDTH = Constant(2.0**-64)
LOSS_MOST = Constant(2.0**51)
"""Bounds on a valid state.  A state that is learned stays within narrower bounds."""
LEAST_SPREAD = Constant(1e-6)
JUDGED = 20
"""Number of rows after which the usual surprises are known."""
USUALLY = 100
"""Once this many surprises are learned, a new one is clipped to SPREADS_MOST spreads above the usual surprise before it is learned."""
SPREADS_MOST = Constant(4.0)
"""The excess of a surprise over the usual surprise is clipped to this many spreads, so that faults do not become usual.
One in 30,000 normally distributed surprises is above this limit."""
AGAIN_FOLLOWED = 100
AGAIN_JUDGED = 100
AGAIN_TAUGHT = 300
"""After a new regime, the row counts of the course, of the usual surprises and of the threshold are reduced to these
numbers, so that all three learn faster."""


# ------------------------------------------------------------------------------------------------------ questions


@kernel
def judge_row(m: GmmModel, x: Real[DIM]) -> Real:
    """Write the three surprises of a row to m.loud.  Returns the largest one.  O(K D^2)."""
    look_around(m, x)
    innovate(m, x)
    surprise_by_course(m)
    repeats = surprise_of_repeats(m, x)
    most = bounded(REPEATS_SHARE * repeats, LEVEL_MOST)
    m.loud[2] = most
    for i in range(len(m.surprise)):
        m.loud[i] = bounded((m.surprise[i] - m.usual[i]) / sqrt(m.spread[i] + LEAST_SPREAD), LEVEL_MOST)
        if m.loud[i] > most:
            most = m.loud[i]
    return most


@kernel
def novelty(
    m: GmmModel,
    x: Real[DIM],
    score: Real[1],
) -> Index:
    """Write one number to ``score``: how surprising x would be as the next row, from -64 to 64.  For usual rows, ``score`` is
    about 0.  O(K D^2).

    Returns DONE, or REFUSED_INPUT with ``score`` unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    score[0] = real(0)
    if m.watched[0] > 0:
        level = judge_row(m, x)
        score[0] = level
    return Status.DONE


@kernel
def intact(m: GmmModel) -> Bool:
    """Whether the counts that are used as indices are within their ranges."""
    if m.known[0] > len(m.weights) or m.newest[0] > m.known[0] or m.culprit[0] >= len(m.shares):
        return False
    if m.merge_first[0] >= len(m.weights) or m.merge_second[0] >= len(m.weights):
        return False
    return m.known[0] > 0 or m.watched[0] == 0


@kernel
def alarm(m: GmmModel, state: Real[3]) -> Index:
    """Write three numbers to ``state``: the level, its threshold, and the number of rows since the alarm began, which is 0 if the latest
    row is not in alarm.

    Returns DONE, or REFUSED_STATE with ``state`` unchanged.
    """
    if not intact(m):
        return Status.REFUSED_STATE
    state[0] = m.level[0]
    state[1] = threshold_of(m)
    state[2] = since_alarm(m)
    return Status.DONE


@kernel
def blame(m: GmmModel, parts: Real[DIM]) -> Index:
    """Write each sensor's share in the present alarm to ``parts``.  If there is no alarm now, write the shares in
    the last alarm.

    Returns the alarm's kind (UNKNOWN to REGIME), DONE if there is no alarm now, or REFUSED_STATE with ``parts`` unchanged.
    """
    if not intact(m):
        return Status.REFUSED_STATE
    copy(m.shares, parts, len(parts))
    if since_alarm(m) == real(0):
        return Status.DONE
    return kind_of(m)


@kernel
def regimes(m: GmmModel, shares: Real[COMPONENTS]) -> Index:
    """Write one number to ``shares`` for each place of the bank: the fraction of the latest rows that belong to the regime in this place,
    -1 if the regime is rejected, or 0 if the place is unused.

    Returns DONE, or REFUSED_STATE with ``shares`` unchanged.
    """
    if not intact(m):
        return Status.REFUSED_STATE
    total = real(0)
    for k in range(m.known[0]):
        if m.rejected[k] == 0:
            total += m.weights[k]
    for k in range(len(shares)):
        shares[k] = real(0)
        if k < m.known[0]:
            shares[k] = real(-1) if m.rejected[k] != 0 else m.weights[k] / total
    return Status.DONE


# ------------------------------------------------------------------------------------------------------- learning


@kernel
def quicken(m: GmmModel) -> None:
    """End the alarm and learn faster for a while, because the machine is now in a new state."""
    if m.followed[0] > AGAIN_FOLLOWED:
        m.followed[0] = AGAIN_FOLLOWED
    if m.surprised[0] > AGAIN_JUDGED:
        m.surprised[0] = AGAIN_JUDGED
    if m.taught[0] > AGAIN_TAUGHT:
        m.taught[0] = AGAIN_TAUGHT
    m.settling[0] = m.settles_for
    m.level[0] = real(0)
    m.episode[0] = 0
    m.quiet[0] = 0


@kernel
def learn_usual(m: GmmModel) -> None:
    """Learn which surprises are usual.  The first call sets the usual surprises; the spreads start at 1.  O(1)."""
    if m.surprised[0] < m.horizon:
        m.surprised[0] += 1
    rate = real(1) / real(m.surprised[0])
    for i in range(len(m.usual)):
        difference = m.surprise[i] - m.usual[i]
        if m.surprised[0] > USUALLY:
            most = SPREADS_MOST * sqrt(m.spread[i])
            if difference > most:
                difference = most
        m.usual[i] = bounded(m.usual[i] + rate * difference, SCORE_MOST)
        if m.surprised[0] > 1:
            above = difference if difference > real(0) else real(0)
            m.spread[i] = m.spread[i] + rate * (real(2) * (above * above) - m.spread[i])


@kernel
def start(m: GmmModel, x: Real[DIM]) -> None:
    """Start the first regime and the course at the first row.  O(D^2)."""
    start_at(m, 0, x)
    start_course(m, x)
    m.known[0] = 1
    m.weights[0] = real(1)
    m.spread[0] = real(1)
    m.spread[1] = real(1)
    m.watched[0] = 1


@kernel
def warming(m: GmmModel) -> Bool:
    """Whether it is too early for alarms.  Levels mean nothing before the usual surprises are known."""
    return m.watched[0] < m.warmup or m.surprised[0] < JUDGED


@kernel
def notice(m: GmmModel, x: Real[DIM], warm: Bool) -> Bool:
    """Judge a row.  Returns whether the row is in alarm.  warm: whether it is too early for alarms.  O(K D^2); in an alarm, also O(D^3)."""
    score = judge_row(m, x)
    m.missed[0] = 0
    raise_level(m, score, m.surprised[0] < JUDGED)
    alarmed = m.forbidden[0] != 0
    # a regime with few rows cannot judge rows yet
    if not warm and m.level[0] > threshold_of(m) and m.counts[m.nearest[0]] > m.fresh:
        alarmed = True
    follow_episode(m, alarmed)
    if alarmed:
        accuse(m, x)
    return alarmed


@kernel
def miss_sample(m: GmmModel, refused: Index) -> Index:
    """Count a refused sample.  Many consecutive refusals raise an alarm."""
    if refused != Status.REFUSED_STATE:
        if m.missed[0] >= m.absent_after:
            return GmmStatus.ABSENT
        m.missed[0] += 1
    return refused


@kernel
def stay_awake(m: GmmModel, x: Real[DIM]) -> Index:
    """Judge a row while learning is off.  O(K D^2); in an alarm, also O(D^3)."""
    if m.watched[0] == 0:
        return TakenStatus.FROZEN
    warm = warming(m)
    alarmed = notice(m, x, warm)
    pass_on(m, x, real(0))
    return GmmStatus.NOVEL if alarmed else TakenStatus.FROZEN


@kernel
def watch_row(m: GmmModel, x: Real[DIM]) -> Index:
    """Judge a row, then learn it.  O(K D^2); in an alarm, also O(D^3)."""
    if m.watched[0] == 0:
        start(m, x)
        return GmmStatus.WARMING
    judged = m.surprised[0] >= JUDGED
    warm = warming(m)
    alarmed = notice(m, x, warm)
    armed = is_armed(m)
    # the candidate of the previous alarm was kept until this alarm, so that ``acknowledge`` could accept it
    if armed and alarmed and m.episode[0] == 1:
        drop_candidate(m)
    strange = is_strange(m)
    # the threshold learns no strange rows in the warm-up: they belong to regimes that are not known yet
    if judged and settles(m.watched[0], m.warmup) and not (warm and strange):
        teach(m, alarmed, not warm, m.settling[0] > 0)
    held = (alarmed or (armed and m.episode[0] > 0)) and (m.settling[0] == 0 or m.forbidden[0] != 0)
    if m.settling[0] > 0:
        m.settling[0] = m.settling[0] - 1
    lasting = held and m.episode[0] > m.relearn_after and m.forbidden[0] == 0
    status = Status.DONE
    if m.forbidden[0] == 0:
        if strange or held:
            gather(m, x)
            status = GmmStatus.STRANGE
        else:
            renew(m, x)
        enough = m.patience
        if not warm:
            enough = m.relearn_soon if shared(m) and (not armed or m.settling[0] > 0) else m.relearn_after
        # when an alarm has just begun, most of the candidate's rows are older and come from false alarms
        begun = m.episode[0] > 0 and m.episode[0] < m.relearn_soon
        # the count of a candidate ends at the horizon: if more rows are needed, the rows of the alarm are counted instead
        gathered = m.episode[0] if enough > m.horizon else m.counts[len(m.weights)]
        if status == GmmStatus.STRANGE and not begun and gathered >= enough and has_room(m):
            if not compares_early(m):
                compare_some(m)
            fade(m)
            admit(m, 0, real(0))
            if warm:
                m.newest[0] = 0
            status = GmmStatus.BORN
        else:
            if status == GmmStatus.STRANGE:
                compare_some(m)
            fade(m)
    rate = real(0)
    if not held or lasting:
        if not strange:
            learn_course(m, x)
        rate = real(1) / real(m.followed[0])
        # strange rows do not change the usual surprises: otherwise, many new regimes would make the monitor insensitive
        if m.watched[0] > m.loud_first and (lasting or not strange):
            learn_usual(m)
    pass_on(m, x, rate)
    if (status == GmmStatus.BORN or lasting) and not warm:
        quicken(m)
    if m.watched[0] < m.watched_most:
        m.watched[0] += 1
    # a row that lasts has ended the alarm
    if alarmed and status != GmmStatus.BORN and m.episode[0] > 0:
        return GmmStatus.HELD if held and not lasting else GmmStatus.NOVEL
    if status == Status.DONE and warm:
        return GmmStatus.WARMING
    if status == Status.DONE and m.arms and not armed:
        return GmmStatus.UNARMED
    return status


# ------------------------------------------------------------------------------------------------------- answers


@kernel
def settle(m: GmmModel, rejected: Index) -> Index:
    """Make the candidate a normal or a rejected regime at once.  O(K^2 D^3)."""
    if not intact(m):
        return Status.REFUSED_STATE
    if m.counts[len(m.weights)] == 0:
        if rejected == 0 and m.watched[0] > 0:
            look_around(m, m.before)
            if m.forbidden[0] != 0:
                m.rejected[m.barring[0]] = 0
                quicken(m)
                return Status.DONE
        return GmmStatus.NOTHING_NEW
    if not has_room(m):
        return GmmStatus.NO_ROOM
    lend_shape(m)
    compare_all(m)
    admit(m, rejected, real(0) if rejected != 0 else mean_weight(m))
    if rejected == 0:
        quicken(m)
    return Status.DONE


@kernel
def acknowledge(m: GmmModel) -> Index:
    """Accept the alarm as normal: its rows, which were gathered as a candidate, immediately become a regime.  If there is
    no candidate, and the latest row is in alarm because its regime was rejected, that regime becomes normal again.  O(K^2 D^3).

    Returns DONE, NOTHING_NEW, REFUSED_STATE, or NO_ROOM, which means that the bank is full and has no two regimes to merge.
    """
    return settle(m, 0)


@kernel
def reject(m: GmmModel) -> Index:
    """Make the alarm's rows a rejected regime: similar rows are then always in alarm, and are not learned.  O(K^2 D^3).

    Returns DONE, NOTHING_NEW, REFUSED_STATE, or NO_ROOM, which means that the bank is full and has no two regimes to
    merge.
    """
    return settle(m, 1)


@kernel
def unlearn(m: GmmModel) -> Index:
    """Remove the newest regime, whether it was learned or was added by ``acknowledge`` or ``reject``.  A regime that
    was learned in the warm-up stays.  Regimes that were merged to make room for the newest regime stay merged.  O(D^2).

    Returns DONE, NOTHING_NEW, REFUSED_STATE, or NO_ROOM, which means that no normal regime would be left.
    """
    if not intact(m):
        return Status.REFUSED_STATE
    if m.newest[0] == 0:
        return GmmStatus.NOTHING_NEW
    if m.rejected[m.newest[0] - 1] == 0 and normal_regimes(m) == 1:
        return GmmStatus.NO_ROOM
    drop_newest(m)
    return Status.DONE


# ------------------------------------------------------------------------------------------------------ snapshots


@kernel
def blank(m: GmmModel) -> Bool:
    """Whether nothing was learned."""
    return m.watched[0] == 0


@kernel
def wide(r: Real[...], n: Index) -> Bool:
    """Whether a root's diagonal elements are large enough to divide by.  O(n)."""
    row = 0
    for i in range(n):
        if not (r[row] > LEAST_WIDTH):
            return False
        row = row + n - i
    return True


@kernel
def keeps(m: GmmModel) -> Bool:
    """Whether learning could have led to this state.  O(K D^2)."""
    if not valid_threshold(m) or not (absolute(m.merge_loss[0]) <= LOSS_MOST):
        return False
    last = len(m.weights)
    normal = 0
    for k in range(last + 1):
        used = m.counts[last] > 0 if k == last else k < m.known[0]
        if not used:
            if (
                m.counts[k] != 0
                or not all_zero(m.means[k], len(m.means[0]))
                or not all_zero(m.roots[k], len(m.roots[0]))
            ):
                return False
            if k < last and (m.weights[k] != real(0) or m.rejected[k] != 0):
                return False
        elif m.counts[k] == 0 or not wide(m.roots[k], len(m.before)):
            return False
        elif k < last:
            if not (m.weights[k] > LEAST_WEIGHT):
                return False
            if m.rejected[k] == 0:
                normal = normal + 1
    if m.watched[0] == 0:
        return (
            m.known[0] == 0
            and m.newest[0] == 0
            and m.counts[last] == 0
            and m.followed[0] == 0
            and all_zero(m.joint, len(m.joint))
        )
    return normal > 0 and m.newest[0] <= m.known[0] and m.followed[0] > 0 and wide(m.joint, len(m.pair))


GMM = programs(
    Rule(
        name="gmm",
        model=GmmModel,
        memory=(Threshold, Blame, Course, Bank),
        work=(Sight, Presence),
        configs=(GmmConfig, ThresholdConfig),
        statuses=GmmStatus,
        hooks={
            frame.learn: watch_row,
            frame.stand_by: stay_awake,
            frame.miss_row: miss_sample,
            frame.intact: intact,
            frame.blank: blank,
            frame.keeps: keeps,
        },
        costs=("O(K D^2)", "O(K D^2); in an alarm, also O(D^3)"),
        questions=(Entry("novelty", novelty, "question"),),
        actions=(
            Entry("alarm", alarm, "reading"),
            Entry("blame", blame, "reading"),
            Entry("regimes", regimes, "reading"),
            Entry("acknowledge", acknowledge, "action", answers=True),
            Entry("reject", reject, "action", answers=True),
            Entry("unlearn", unlearn, "action", answers=True),
        ),
        labels=("none",),
        restarts=True,
        alarms=(GmmStatus.NOVEL, GmmStatus.HELD, GmmStatus.ABSENT),
    )
)
