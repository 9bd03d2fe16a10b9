"""A monitor (rule "gmm") by its definitions, in float64: slow, meant to be trusted by reading it.

The bank is a list of Gaussians with whole covariance matrices.  Distances, volumes, merged moments, predictions from the row
before and shares of blame are written as in textbooks, with np.linalg.  Roots appear only where the rule is defined by them:
their diagonals, the deviations that the sensors before do not explain, have floors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pykernel.spec.model import Spec

DONE, BORN, STRANGE, WARMING, NOVEL, HELD, UNARMED = 0, 1, 2, 3, 4, 5, 14
UNKNOWN, JUMP, DRIFT, STUCK, NOISE, REGIME = range(8, 14)
NOTHING_NEW, NO_ROOM = -10, -11
WHITE_MOST, LEVEL_MOST, TINY, GRAIN = 2.0**20, 64.0, 2.0**-62, 2.0**-20
NU = 10.0
"""Degrees of freedom of the bank's t-distributions."""
HORIZON = 2000


def within(x: float, most: float) -> float:
    return min(max(x, -most), most)


def widened(cov: np.ndarray, part: float, least: np.ndarray) -> np.ndarray:
    """The covariance, where no sensor has less of its own than ``part`` of its deviation, and than ``least``."""
    root = np.linalg.cholesky(cov).T
    own = np.diag(root)
    wide = np.maximum(own, np.maximum(part * np.sqrt(np.diag(cov)), least))
    if (wide == own).all():
        return cov
    np.fill_diagonal(root, wide)
    return np.asarray(root.T @ root)


def white(cov: np.ndarray, d: np.ndarray) -> np.ndarray:
    """z with z'z = d' C^-1 d: each deviation from what those before it let expect, in its standard deviations."""
    root = np.linalg.cholesky(cov).T
    z = np.linalg.solve(root.T, d)
    if np.abs(z).max() > WHITE_MOST:  # so many deviations count, and no more
        for i in range(len(z)):
            z[i] = within((d[i] - root[:i, i] @ z[:i]) / root[i, i], WHITE_MOST)
    return z


def log2_volume(cov: np.ndarray) -> float:
    return float(np.linalg.slogdet(cov)[1]) / (2 * math.log(2))


def reconstruction(cov: np.ndarray, z: np.ndarray) -> np.ndarray:
    """(P d)_j / sqrt(P_jj) for whitened deviations z of d: the square is what the distance shrinks by without sensor j."""
    inverse = np.linalg.inv(cov)
    shift = np.linalg.solve(np.linalg.cholesky(cov).T, z)
    return np.clip(shift / np.sqrt(np.diag(inverse)), -WHITE_MOST, WHITE_MOST)


@dataclass
class Gaussian:
    mean: np.ndarray
    cov: np.ndarray
    count: int = 1
    weight: float = 1.0
    rejected: bool = False

    @property
    def heavy(self) -> float:
        return max(self.weight, 1.0)


def merged(a: Gaussian, b: Gaussian) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a mixture of two."""
    p = a.heavy / (a.heavy + b.heavy)
    gap = b.mean - a.mean
    return p * a.mean + (1 - p) * b.mean, p * a.cov + (1 - p) * b.cov + p * (1 - p) * np.outer(gap, gap)


def loss(a: Gaussian, b: Gaussian) -> float:
    """Runnalls' bound, in bits."""
    both = log2_volume(merged(a, b)[1])
    return a.heavy * (both - log2_volume(a.cov)) + b.heavy * (both - log2_volume(b.cov))


class Twin:
    def __init__(self, spec: Spec) -> None:
        novelty = spec.novelty
        self.dim, self.places = spec.dim, spec.learning.components
        self.warmup, self.smoothing, self.rate = novelty.warmup, novelty.smoothing, novelty.false_alarm_rate
        self.relearn_after = novelty.relearn_after
        self.soon, self.patience = max(2, self.relearn_after // 6), min(20, self.relearn_after)
        self.upper = max(0.1, 2 * self.rate)
        self.arms, self.fixed = novelty.life != "changing", novelty.life == "fixed"
        # beyond the quantile, levels have a generalised Pareto distribution
        shape = 0.05 if self.arms else 0.2
        self.tail = (1 - shape) * ((self.upper / self.rate) ** shape - 1) / shape
        self.commissioning, self.most_tokens = novelty.commissioning, 20 + 1000 * self.rate
        self.most_excess, self.most_shift = 3.0, max(1.0, self.tail / 2)
        self.correction = min(max(0.02, 2e-4 / self.rate), 2.0)
        self.outlying = self.dim * (1 - 2 / (9 * self.dim) + 4 * math.sqrt(2 / (9 * self.dim))) ** 3
        self.pairs_a_row = int(spec.config.pairs_a_row)
        self.restart()

    def restart(self) -> None:
        self.bank: list[Gaussian] = []
        self.candidate: Gaussian | None = None
        self.newest: Gaussian | None = None
        self.watched = self.unmet = self.settling = self.surprised = self.taught = self.below = 0
        self.episode = self.quiet = self.age = 0
        self.tokens = 0.0
        self.merges = 0
        self.usual, self.spread = np.zeros(2), np.ones(2)
        self.level = self.quantile = self.excess = self.shift = 0.0
        self.shares, self.leaps, self.culprit, self.abrupt = np.zeros(self.dim), np.zeros(self.dim), 0, False
        self._begin_story()
        self._begin_search()

    # ------------------------------------------------------------------------------------------------ readings

    @property
    def threshold(self) -> float:
        return self.quantile + self.excess * (self.tail + self.shift)

    @property
    def armed(self) -> bool:
        return self.arms and self.age >= self.commissioning

    def alarm(self) -> tuple[float, float, int]:
        return self.level, self.threshold, 0 if self.quiet else self.episode

    def blame(self) -> tuple[np.ndarray, int]:
        return self.shares, self._kind() if self.alarm()[2] else DONE

    def regimes(self) -> np.ndarray:
        total = sum(g.weight for g in self.bank if not g.rejected)
        shares = [-1.0 if g.rejected else g.weight / total for g in self.bank]
        return np.array(shares + [0.0] * (self.places - len(self.bank)))

    # ------------------------------------------------------------------------------------------------ one row

    def update(self, x: np.ndarray) -> int:
        if self.watched == 0:
            self._start(x)
            return WARMING
        self._judge(x)
        judged = self.surprised >= 20
        warm = self.watched < self.warmup or not judged
        score = self.loud.max()
        self.level = score if not judged else self.level + self.smoothing * (score - self.level)
        young = self.nearest.count <= 2 * self.dim + 2
        alarmed = self.forbidden or (not warm and self.level > self.threshold and not young)
        self._follow_episode(alarmed)
        if alarmed:
            self._accuse(x)
        armed = self.armed
        if armed and alarmed and self.episode == 1:
            self.candidate, self.unmet = None, 0
            self._begin_search()
        strange = self.distance > self.outlying and not young
        if judged and 4 * self.watched >= self.warmup and not (warm and strange):
            self._teach(alarmed, not warm)
        held = (alarmed or (armed and self.episode > 0)) and (self.settling == 0 or self.forbidden)
        self.settling = max(self.settling - 1, 0)
        lasting = held and self.episode > self.relearn_after and not self.forbidden
        status = DONE
        if not self.forbidden:
            if strange or held:
                self._gather(x)
                status = STRANGE
            else:
                self._renew(x)
            for g in self.bank:
                if not g.rejected and g.weight > 2.0**-10:
                    g.weight *= 1 - 1 / 5000
            enough = (
                self.patience
                if warm
                else self.soon
                if self._shared() and (not armed or self.settling)
                else self.relearn_after
            )
            begun = 0 < self.episode < self.soon
            if status == STRANGE and not begun and self.candidate.count >= enough and self._has_room():
                self._admit(False)
                self.newest = None if warm else self.newest
                status = BORN
        if not held or lasting:
            self._learn_course(x, strange, lasting)
        same = x == self.before
        self.run = np.where(same, np.minimum(self.run + 1, 65535), 0)
        if (status == BORN or lasting) and not warm:
            self._quicken()
        self.before = x
        self.watched += 1
        if alarmed and status != BORN and self.episode:
            return HELD if held and not lasting else NOVEL
        if status == DONE:
            return WARMING if warm else UNARMED if self.arms and not armed else DONE
        return status

    def acknowledge(self) -> int:
        barring = None if self.candidate else self._barring(self._look_around(self.before))
        if barring is not None:
            barring.rejected = False
            self._quicken()
            return DONE
        found = self._admitted(False)
        if found == DONE:
            self._quicken()
        return found

    def reject(self) -> int:
        return self._admitted(True)

    def unlearn(self) -> int:
        if self.newest is None:
            return NOTHING_NEW
        if not self.newest.rejected and sum(not g.rejected for g in self.bank) == 1:
            return NO_ROOM
        place = next(i for i, g in enumerate(self.bank) if g is self.newest)
        self.bank[place] = self.bank[-1]
        del self.bank[-1]
        self.newest = None
        self._begin_search()
        return DONE

    def _admitted(self, rejected: bool) -> int:
        if self.candidate is None:
            return NOTHING_NEW
        if not self._has_room():
            return NO_ROOM
        self._lend_shape()
        self._compare(10**6)
        self._admit(rejected, 0 if rejected else sum(g.weight for g in self.bank) / len(self.bank))
        return DONE

    def _start(self, x: np.ndarray) -> None:
        deviation = np.maximum(np.abs(x) / 1024, GRAIN * np.abs(x) + TINY)
        self.bank = [Gaussian(x, np.diag(deviation**2))]
        self.middle = self.before = x
        self.joint, self.followed = np.diag(np.tile(deviation, 2) ** 2), 1
        self.least_step, self.repeats, self.run = np.zeros(self.dim), np.zeros(self.dim), np.zeros(self.dim)
        self.watched = 1

    # ------------------------------------------------------------------------------------------------ surprises

    def _lengthened(self, square: float) -> float:
        return (NU + self.dim) * math.log2(1 + square / NU)

    def _look_around(self, x: np.ndarray) -> list[tuple[float, np.ndarray, Gaussian]]:
        """Of each regime: surprise, whitened deviations, the regime."""
        total = sum(g.weight for g in self.bank)
        found = []
        for g in self.bank:
            z = white(g.cov, x - g.mean)
            bits = self._lengthened(z @ z) + 2 * (log2_volume(g.cov) - math.log2(g.weight / total))
            found.append((bits, z, g))
        return found

    def _barring(self, found: list[tuple[float, np.ndarray, Gaussian]]) -> Gaussian | None:
        """The rejected regime that forbids a row: it reaches to it, and explains it better, or no other does."""
        by_bank, z, near = min((f for f in found if not f[2].rejected), key=lambda f: f[0])
        strange = z @ z > self.outlying and near.count > 2 * self.dim + 2
        barred = [(bits, g) for bits, z, g in found if g.rejected and z @ z <= 4 * self.outlying]
        bits, barring = min(barred, key=lambda f: f[0], default=(math.inf, None))
        return barring if strange or bits < by_bank else None

    def _lend_shape(self) -> None:
        if self.candidate.count <= 2 * self.dim + 2:
            near = min((f for f in self._look_around(self.candidate.mean) if not f[2].rejected), key=lambda f: f[0])
            self.candidate.cov = near[2].cov.copy()

    def _judge(self, x: np.ndarray) -> None:
        found = self._look_around(x)
        by_bank, self.own, self.nearest = min((f for f in found if not f[2].rejected), key=lambda f: f[0])
        self.distance = float(self.own @ self.own)
        self.forbidden = self._barring(found) is not None
        n = self.dim
        self.pair = white(self.joint, np.concatenate([self.before - self.middle, x - self.middle]))
        self.innovation = float(self.pair[n:] @ self.pair[n:])
        # of the row, given the row before
        gain = np.linalg.solve(self.joint[:n, :n], self.joint[:n, n:])
        given = self.joint[n:, n:] - self.joint[n:, :n] @ gain
        by_course = self._lengthened(self.innovation) + 2 * log2_volume(given)
        self.surprise = np.array([min(by_course, by_bank), by_bank])
        loud = np.clip((self.surprise - self.usual) / np.sqrt(self.spread + 1e-6), -LEVEL_MOST, LEVEL_MOST)
        self.loud = np.append(loud, min(0.5 * self._surprise_of_repeats(x), LEVEL_MOST))

    def _surprise_of_repeats(self, x: np.ndarray) -> float:
        part = (self.repeats * self.followed + 0.5) / (self.followed + 1)
        nats = np.where((x == self.before) & (part < 0.1), -(self.run + 1) * np.log(part), 0.0)
        self.repeater = int(nats.argmax())
        return float(nats.max())

    # ------------------------------------------------------------------------------------------------ threshold

    def _follow_episode(self, alarmed: bool) -> None:
        if alarmed:
            self.episode, self.quiet = self.episode + 1, 0
        elif self.episode and self.quiet < 5:
            self.episode, self.quiet = self.episode + 1, self.quiet + 1
        else:
            self.episode = self.quiet = 0

    def _correct(self, alarmed: bool) -> None:
        change = self.correction * (alarmed - self.rate)
        self.shift = min(max(self.shift + change, -0.7 * self.tail), self.most_shift if self.armed else 64.0)

    def _teach(self, alarmed: bool, corrects: bool) -> None:
        if corrects:
            self.age = min(self.age + 1, self.commissioning)
        self.tokens = min(self.tokens + 1.5 * self.rate, self.most_tokens) if self.armed else self.most_tokens
        if self.episode > (20 if self.armed else 10) or (self.armed and self.fixed):
            return
        if self.armed and self.episode > 0:
            if not alarmed:
                self._correct(False)
                return
            if self.tokens < 1:
                return
            self.tokens -= 1
        if self.taught == 0 or (self.below == 60 and not corrects):
            self.quantile, self.excess = self.level, 1.0
            self.taught = self.below = 0
        self.below = 0 if self.level > self.quantile else min(self.below + 1, 60)
        self.taught = min(self.taught + 1, 1000)
        step = max(4 / (self.taught + 4), 0.01) * self.excess
        self.quantile = within(self.quantile + step * ((self.level > self.quantile) - self.upper), LEVEL_MOST)
        over = self.level - self.quantile
        if over > 0:
            if self.armed:  # the mean follows the median
                over = 2 * self.excess if over > math.log(2) * self.excess else 0.0
            elif corrects:
                over = min(over, self.excess * (self.tail + 1))
            rows = 1000 if self.episode > 1 and not self.settling else self.taught
            learned = self.excess + (over - self.excess) / (self.upper * rows + 1)
            self.excess = min(max(learned, 1 / 20), self.most_excess if self.armed else 128.0)
        if corrects:
            self._correct(alarmed)

    # ------------------------------------------------------------------------------------------------ the bank

    def _least(self, mean: np.ndarray) -> np.ndarray:
        return np.maximum(GRAIN * np.abs(mean) + TINY, self.least_step / math.sqrt(12))

    def _absorb(self, g: Gaussian, x: np.ndarray) -> None:
        g.count = min(g.count + 1, HORIZON)
        rate, gap = 1 / g.count, x - g.mean
        g.mean = g.mean + rate * gap
        g.cov = widened((1 - rate) * (g.cov + rate * np.outer(gap, gap)), 0.03, self._least(g.mean))

    def _gather(self, x: np.ndarray) -> None:
        if self.candidate is None:
            self.candidate = Gaussian(x, widened(0.09 * self.nearest.cov, 0, self._least(x)))
            self.unmet = 0
            self._begin_search()
        else:
            self._absorb(self.candidate, x)
            self._compare(self.pairs_a_row)

    def _renew(self, x: np.ndarray) -> None:
        self._absorb(self.nearest, x)
        self.nearest.weight += 1
        if self.candidate is not None:
            self.unmet += 1
            if self.unmet > 3 * self.candidate.count:
                self.candidate = None

    def _begin_search(self) -> None:
        self.to_compare = [(j, i) for i in range(self.places) for j in range(i)]
        self.best: tuple[float, int, int] | None = None

    def _compare(self, pairs: int) -> None:
        if len(self.bank) < self.places:
            return
        for j, i in self.to_compare[:pairs]:
            if not (self.bank[j].rejected or self.bank[i].rejected):
                found = loss(self.bank[j], self.bank[i]), j, i
                self.best = found if self.best is None else min(self.best, found)
        del self.to_compare[:pairs]

    def _has_room(self) -> bool:
        return len(self.bank) < self.places or sum(not g.rejected for g in self.bank) > 1

    def _admit(self, rejected: bool, least: float = 0) -> None:
        new = self.candidate
        assert new is not None
        new.weight, new.rejected = max(float(new.count), least), rejected
        if len(self.bank) < self.places:
            self.bank.append(new)
        else:
            assert self.best is not None and not self.to_compare
            _, j, i = self.best
            self.merges += 1
            a, b = self.bank[j], self.bank[i]
            mean, cov = merged(a, b)
            count = min(a.count + b.count, HORIZON)
            self.bank[j] = Gaussian(mean, widened(cov, 0, self._least(mean)), count, a.weight + b.weight)
            self.bank[i] = new
        self.candidate, self.newest = None, new

    def _quicken(self) -> None:
        self.followed, self.surprised = min(self.followed, 100), min(self.surprised, 100)
        self.taught = min(self.taught, 300)
        self.settling = min(300, self.relearn_after)
        self.episode, self.quiet, self.level = 0, 0, 0.0

    # ------------------------------------------------------------------------------------------------ the course

    def _learn_course(self, x: np.ndarray, strange: bool, lasting: bool) -> None:
        n = self.dim
        if not strange:
            self.followed = min(self.followed + 1, HORIZON)
            rate = share = 1 / self.followed
            if self.innovation > 9 * n and self.followed > 6 * n:
                share = rate * 9 * n / self.innovation
            gap = np.concatenate([self.before, x]) - np.tile(self.middle, 2)
            self.middle = self.middle + share * gap[n:]
            cov = (1 - rate) * (self.joint + share * np.outer(gap, gap))
            self.joint = widened(cov, 0.03, np.tile(self._least(self.middle), 2))
        self.repeats = self.repeats + ((x == self.before) - self.repeats) / self.followed
        step = np.abs(x - self.before)
        self.least_step = np.where(
            (step > 0) & ((self.least_step == 0) | (step < self.least_step)), step, self.least_step
        )
        if self.watched > 4 * n and (lasting or not strange):
            known, self.surprised = self.surprised > 0, min(self.surprised + 1, HORIZON)
            above = self.surprise - self.usual
            if self.surprised > 100:
                above = np.minimum(above, 4 * np.sqrt(self.spread))
            self.usual = self.usual + above / self.surprised
            if known:
                self.spread = self.spread + (2 * np.maximum(above, 0) ** 2 - self.spread) / self.surprised

    # ------------------------------------------------------------------------------------------------ blame

    def _begin_story(self) -> None:
        self.reported, self.calm, self.rough, self.others = 0, 0.0, 0.0, 0.0

    def _accuse(self, x: np.ndarray) -> None:
        n = self.dim
        by_bank = reconstruction(self.nearest.cov, self.own) ** 2
        by_course = reconstruction(self.joint, self.pair)[n:] ** 2
        if self.episode == 1:
            self.shares, self.culprit = np.zeros(n), 0
            self.abrupt = bool(self.loud[0] > self.threshold)
            leap = (by_course > self.innovation / 2) & (x != self.before)
            self.leaps = np.where(leap, by_course, 0.0)
            self._begin_story()
        # by how much the surprise, (NU + D) log2(1 + d^2 / NU), shrinks without each sensor
        shrinks = [
            np.log2((NU + square) / (NU + np.maximum(square - part, 0)))
            for square, part in ((self.innovation, by_course), (self.distance, by_bank))
        ]
        found = shrinks[1] if self.settling else np.maximum(*shrinks)
        found[self.repeater] += 0.25 * self.loud[2]
        self.shares = self.shares + max(1 / self.episode, 0.05) * (found / (found.sum() + 2.0**-40) - self.shares)
        best = int(self.shares.argmax())
        if best != self.culprit:
            self.culprit = best
            self._begin_story()
        both = [best, n + best]
        then, cross, now = self.joint[np.ix_(both, both)].ravel()[[0, 1, 3]]
        step = within((x[best] - self.before[best]) / math.sqrt(then + now - 2 * cross + TINY**2), WHITE_MOST)
        if self.reported:
            self.rough += (step**2 - self.rough) / self.reported
        self.reported = min(self.reported + 1, HORIZON)
        self.calm += ((abs(step) < 0.1) - self.calm) / self.reported
        rest = min(max(self.distance - by_bank[best], 0.0), WHITE_MOST**2)
        self.others += (rest - self.others) / self.reported

    def _shared(self) -> bool:
        return self.others > 1.6 * self.dim

    def _kind(self) -> int:
        if self.reported < 2:
            return UNKNOWN
        if self.rough > 25:
            return NOISE
        if self.leaps[self.culprit] > 6**2:
            return REGIME if self.others > 16 * self.dim else JUMP
        if self.calm > 0.5:
            return STUCK
        if self.abrupt != self._shared():
            return UNKNOWN
        return REGIME if self.abrupt else DRIFT
