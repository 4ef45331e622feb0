"""RoadBeliefs: what is believed of each road's travel time by count, learned from lessons, and forgotten when it fails.

A road takes t0 (1 + 0.15 (count / c)^beta): a posterior over log c on a grid, its prior pooled over the roads of a
class, one beta for all by their evidence. Where this curve does not fit, the mean times of the bins take its place,
made non-decreasing, and go on beyond the last as steeply as the curve: never flat.

A road is learned anew where its latest lessons, or a vehicle that does not come out, contradict what was believed. What
was known is set aside, and taken up again when it explains the lessons that come later.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Floats, Ints
from routesim.kernels import kernel
from routesim.traffic.protocol import TrafficTask

RISE = 0.15  # by which a road takes longer at the count c
BETAS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
_GRID = np.arange(-1.0, 12.0, 0.15)  # of log c
_USUAL_VPH = 1000.0  # the flow at which a road of which nothing is known is believed to take 15 % longer
_WIDEST, _NARROWEST = 1.0, 0.3  # the standard deviation of log c over roads
_LEAST_S = 1e-3  # roads that take no time have no curve
_SPREAD = 0.1  # of the logarithm of a time within a bin, beside the noise
_SLACK = 0.03  # by which a curve may be wrong and still be right enough
_MISFIT = 4.0  # the mean squared error, in units of what is expected, beyond which a curve does not fit
_MOST_RISE = 1e5
_SURPRISE, _SHIFT = 5.0, np.log(1.15)  # of the latest lessons: standard deviations, and the logarithm of the factor
_ENOUGH = 3  # lessons of a road at one count, to go by them
_KNOWN = 20  # lessons of a road before they can be contradicted
_OVERDUE = 2.0  # times what was believed
_ANSWER = 2.0  # times its age: what a vehicle that does not come out counts for
_NEWS = 1.05  # times as many lessons, for which a road is fitted anew
_SHOWN = 2_000  # roads by which beta is chosen


class Sums(NamedTuple):
    """Lessons added up by (edge, bin): visits and seconds."""

    visits: Floats
    seconds: Floats

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Self:
        """Return sums of nothing."""
        return cls(np.zeros(shape), np.zeros(shape))


class Fits(NamedTuple):
    """What is believed of each road's c: mean and standard deviation of its logarithm, and how badly the curve fits."""

    mean: Floats
    std: Floats
    misfit: Floats


class _Look(NamedTuple):
    """What was seen at a look: how many had entered each road so far, and the times that were believed."""

    time_s: float
    entered: Floats
    believed: Floats


class RoadBeliefs:
    """What is believed of all roads; `look` takes in the lessons since the last look."""

    def __init__(self, task: TrafficTask, *, forget: bool) -> None:
        lessons, network = task.lessons, task.network
        self._task, self._forget = task, forget
        self.starts = lessons.bin_starts.astype(np.float64)
        self._logs = np.log(np.append(np.maximum((self.starts[:-1] + self.starts[1:] - 1) / 2, 1e-9), self.starts[-1]))
        self.free_flow = np.maximum(network.free_flow_s, _LEAST_S)
        shape = lessons.visits.shape
        self.kept, self._aside = Sums.none(shape), Sums.none(shape)
        self._seen = Sums.none(shape)
        self.beta = 4.0
        classes, self._class = np.unique(np.asarray(network.highways, dtype=str), return_inverse=True)
        self._shift, self._width = np.zeros(len(classes)), _WIDEST
        # Of vehicles on a road as many stand for a flow as come while one drives.
        span = task.window_s if lessons.counted == "entries" else self.free_flow
        self._size = np.log(np.broadcast_to(np.maximum(_USUAL_VPH * span / 3600.0, 0.5), (shape[0],)))
        self._spread = np.hypot(task.noise, _SPREAD)
        self.fits = Fits(self._size.copy(), np.full(shape[0], _WIDEST), np.zeros(shape[0]))
        self.times = np.empty(shape)
        self._write(np.arange(shape[0]))
        self._past: list[_Look] = []
        self._fitted = np.zeros(shape[0])  # how many lessons each fit was made from
        self.resets = 0

    def look(self, now_s: float, counts: NDArray[np.integer]) -> bool:
        """Take in what was driven since the last look; say whether anything is believed otherwise."""
        lessons, seen = self._task.lessons, self._seen
        new = Sums(lessons.visits - seen.visits, lessons.sums - seen.seconds)
        seen.visits[:], seen.seconds[:] = lessons.visits, lessons.sums
        uses = new.visits.sum(axis=1)
        changed = uses > 0
        if self._forget:
            late, age = self._overdue(now_s, counts, lessons.visits.sum(axis=1))
            doubted = _surprised(new, self.kept, self._known(), self._spread)
            for edge in np.flatnonzero(doubted):
                self._reset(int(edge), new)
            np.add(self.kept.visits, new.visits, out=self.kept.visits)
            np.add(self.kept.seconds, new.seconds, out=self.kept.seconds)
            columns = np.searchsorted(self.starts, counts, side="right") - 1
            for edge in np.flatnonzero(late & ~doubted):
                self._reset(int(edge), None)
                self.kept.visits[edge, columns[edge]] += 2.0
                self.kept.seconds[edge, columns[edge]] += 2.0 * _ANSWER * age[edge]
            changed |= late
        else:
            np.add(self.kept.visits, new.visits, out=self.kept.visits)
            np.add(self.kept.seconds, new.seconds, out=self.kept.seconds)
        total = self.kept.visits.sum(axis=1)
        edges = np.flatnonzero(changed & ((total > _NEWS * self._fitted) | (total < self._fitted)))
        self._fitted[edges] = total[edges]
        if len(edges):
            self._fit(edges)
            self._write(edges)
        return bool(len(edges))

    def pool(self) -> None:
        """Choose beta, and what roads of a class have in common, by all that is kept; fit all roads anew."""
        most = np.argsort(-self.kept.visits.sum(axis=1), kind="stable")[:_SHOWN]
        most = most[self.kept.visits[most].sum(axis=1) > 0]
        if not len(most):
            return
        scores = [_evidence(most, self.kept, self.free_flow, self._logs, beta, self._spread) for beta in BETAS]
        self.beta = BETAS[int(np.argmax(scores))]
        everybody = np.arange(len(self._size))
        self._fit(everybody)
        sure = self.fits.std < _NARROWEST
        if sure.any():
            apart = self.fits.mean - self._size
            usual, width = float(apart[sure].mean()), float(apart[sure].std())
            number = np.bincount(self._class[sure], minlength=len(self._shift))
            total = np.bincount(self._class[sure], apart[sure], minlength=len(self._shift))
            self._shift = (total + 5.0 * usual) / (number + 5.0)
            self._width = min(max(width, _NARROWEST), _WIDEST)
            self._fit(everybody)
        self._write(everybody)

    def _fit(self, edges: Ints) -> None:
        prior = self._size + self._shift[self._class]
        _fit(edges, self.kept, self.free_flow, self._logs, prior, self._width, self.beta, self._spread, self.fits)

    def _write(self, edges: Ints) -> None:
        known = edges, self.kept, self.free_flow, self.starts, self._logs
        _write(*known, self.beta, self.fits, self.times)

    def _known(self) -> Bools:
        """Say of which roads enough is known to be contradicted."""
        return np.asarray(self.kept.visits.sum(axis=1) >= _KNOWN)

    def _reset(self, edge: int, new: Sums | None) -> None:
        """Set aside what was known of a road; take up what was set aside before where it explains what is new."""
        kept, aside = self.kept, self._aside
        before = kept.visits[edge].copy(), kept.seconds[edge].copy()
        kept.visits[edge], kept.seconds[edge] = 0.0, 0.0
        if new is not None and aside.visits[edge].sum() >= _KNOWN:
            kept.visits[edge], kept.seconds[edge] = aside.visits[edge], aside.seconds[edge]
            place = np.array([edge])
            self._fit(place)
            self._write(place)
            uses = new.visits[edge].sum()
            believed = float(_mean_times(new.visits[edge], self._logs, self.times[edge], self.starts)) / uses
            if abs(np.log(new.seconds[edge].sum() / uses / believed)) > _SHIFT:
                kept.visits[edge], kept.seconds[edge] = 0.0, 0.0
        aside.visits[edge], aside.seconds[edge] = before
        self._fitted[edge] = np.inf
        self.resets += 1

    def _overdue(self, now_s: float, counts: NDArray[np.integer], left: Ints) -> tuple[Bools, Floats]:
        """Return the roads whose oldest vehicle is much older than believed, and its age at least.

        Who has entered is known from the counts: those of the window, and who had entered before it.
        """
        past, window, edges = self._past, self._task.window_s, np.arange(len(counts))
        entered = counts + left if self._task.lessons.counted == "vehicles" else counts + self._entered(now_s - window)
        columns = np.searchsorted(self.starts, counts, side="right") - 1
        believed = self.times[edges, np.minimum(columns + 1, len(self.starts) - 1)]
        past.append(_Look(now_s, np.asarray(entered, dtype=np.float64), believed))
        age, longest, inside = np.zeros(len(counts)), np.zeros(len(counts)), entered > left
        for place in range(len(past) - 1, -1, -1):
            # Those who are inside had not all entered at the look before: the oldest came after it. What was believed
            # of the road is that of any time since.
            longest = np.where(inside, np.maximum(longest, past[place].believed), longest)
            age = np.where(inside & (past[place].entered > left), now_s - past[place].time_s, age)
            inside = inside & (past[place].entered > left)
        factor = max(_OVERDUE, float(np.exp(3.0 * self._task.noise)))
        while len(past) > 2 and past[1].time_s < now_s - max(2 * window, 3600.0):
            past.pop(0)
        return np.asarray(self._known() & (age > factor * longest)), age

    def _entered(self, then_s: float) -> Floats:
        """Return how many had entered each road by then, with a straight line between looks."""
        past = self._past
        if not past or then_s <= past[0].time_s:
            return past[0].entered if past and then_s == past[0].time_s else np.zeros(len(self.free_flow))
        place = min(int(np.searchsorted([one.time_s for one in past], then_s, side="right")), len(past) - 1)
        low, high = past[place - 1], past[place]
        part = min(1.0, (then_s - low.time_s) / (high.time_s - low.time_s))
        return low.entered + part * (high.entered - low.entered)


@kernel
def _log_rise(log_count: float, log_c: float, beta: float) -> float:
    """Return the logarithm of the time at a count over that of the empty road."""
    return float(np.log1p(RISE * np.exp(min(50.0, beta * (log_count - log_c)))))


@kernel
def _score(edge: int, kept: Sums, free_flow: Floats, logs: Floats, log_c: float, beta: float, spread: float) -> float:
    """Return the logarithm of the likelihood of what was seen of a road, up to a constant."""
    total = 0.0
    for column in range(len(logs)):
        visits = kept.visits[edge, column]
        if visits > 0.0:
            seen = np.log(kept.seconds[edge, column] / visits / free_flow[edge])
            error = seen - _log_rise(logs[column], log_c, beta)
            total -= 0.5 * error * error / (spread * spread / visits + _SLACK * _SLACK)
    return total


@kernel
def _zoom(
    edge: int,
    kept: Sums,
    free_flow: Floats,
    logs: Floats,
    near: float,
    prior: float,
    width: float,
    beta: float,
    spread: float,
) -> tuple[float, float]:
    """Return where log c is likeliest, beginning at the best of the grid, and its standard deviation there."""
    step, scores = _GRID[1] - _GRID[0], np.empty(9)
    for _ in range(3):
        step /= 4.0
        for k in range(9):
            log_c = near + (k - 4) * step
            scores[k] = _score(edge, kept, free_flow, logs, log_c, beta, spread) - 0.5 * ((log_c - prior) / width) ** 2
        near += (np.argmax(scores) - 4) * step
    best = min(max(int(np.argmax(scores)), 1), 7)
    curve = (2.0 * scores[best] - scores[best - 1] - scores[best + 1]) / step**2
    return near, 1.0 / np.sqrt(max(curve, 1.0 / width**2))


@kernel
def _fit(
    edges: Ints,
    kept: Sums,
    free_flow: Floats,
    logs: Floats,
    prior: Floats,
    width: float,
    beta: float,
    spread: float,
    fits: Fits,
) -> None:
    """Fill in what is believed of the c of some roads."""
    scores = np.empty(len(_GRID))
    for edge in edges:
        best = 0
        for k in range(len(_GRID)):
            apart = (_GRID[k] - prior[edge]) / width
            scores[k] = _score(edge, kept, free_flow, logs, _GRID[k], beta, spread) - 0.5 * apart * apart
            if scores[k] > scores[best]:
                best = k
        total = mean = square = 0.0
        for k in range(len(_GRID)):
            weight = np.exp(scores[k] - scores[best])
            total += weight
            mean += weight * _GRID[k]
            square += weight * _GRID[k] ** 2
        mean /= total
        std = np.sqrt(max(0.0, square / total - mean * mean))
        step = _GRID[1] - _GRID[0]
        if std < 2.0 * step:  # too narrow for the grid
            mean, std = _zoom(edge, kept, free_flow, logs, _GRID[best], prior[edge], width, beta, spread)
        fits.mean[edge], fits.std[edge] = mean, std
        bins = 0
        for column in range(len(logs)):
            bins += kept.visits[edge, column] >= 3.0
        error = -2.0 * _score(edge, kept, free_flow, logs, mean, beta, spread)
        fits.misfit[edge] = error / bins if bins >= 3 else 0.0


@kernel
def _evidence(edges: Ints, kept: Sums, free_flow: Floats, logs: Floats, beta: float, spread: float) -> float:
    """Return how well curves with this beta can explain what was seen of some roads."""
    total = 0.0
    for edge in edges:
        best, near = -np.inf, _GRID[0]
        for log_c in _GRID:
            score = _score(edge, kept, free_flow, logs, log_c, beta, spread)
            if score > best:
                best, near = score, log_c
        near, _ = _zoom(edge, kept, free_flow, logs, near, near, _WIDEST, beta, spread)
        best = max(best, _score(edge, kept, free_flow, logs, near, beta, spread))
        total += max(best, -50.0)  # a road that no curve fits does not choose
    return total


@kernel
def _write(
    edges: Ints, kept: Sums, free_flow: Floats, starts: Floats, logs: Floats, beta: float, fits: Fits, times: Floats
) -> None:
    """Fill in the times of some roads at the starts of bins: by the curve, or by the bins where it does not fit."""
    n_bins = len(starts)
    means, weights, places, levels = np.empty(n_bins), np.empty(n_bins), np.empty(n_bins), np.empty(n_bins)
    ends = np.empty(n_bins, dtype=np.int64)
    for edge in edges:
        row, log_c = times[edge], fits.mean[edge]
        for column in range(n_bins):
            log_count = np.log(starts[column]) if starts[column] > 0.0 else -1e3
            row[column] = free_flow[edge] * min(_MOST_RISE, np.exp(_log_rise(log_count, log_c, beta)))
        if fits.misfit[edge] <= _MISFIT:
            continue
        seen = blocks = 0  # the mean times of bins, non-decreasing: those that fall are pooled with the one before
        for column in range(n_bins):
            visits = kept.visits[edge, column]
            if visits == 0.0:
                continue
            places[seen] = np.exp(logs[column])
            seen += 1
            means[blocks] = max(free_flow[edge], kept.seconds[edge, column] / visits)
            weights[blocks], ends[blocks] = visits, seen
            blocks += 1
            while blocks > 1 and means[blocks - 2] >= means[blocks - 1]:
                both = weights[blocks - 2] + weights[blocks - 1]
                means[blocks - 2] += (means[blocks - 1] - means[blocks - 2]) * (weights[blocks - 1] / both)
                weights[blocks - 2], ends[blocks - 2] = both, ends[blocks - 1]
                blocks -= 1
        first = 0
        for block in range(blocks):
            levels[first : ends[block]] = means[block]
            first = ends[block]
        last, at = levels[seen - 1], places[seen - 1]
        low = np.exp(_log_rise(np.log(at), log_c, beta))
        for column in range(n_bins):
            if starts[column] >= at:
                row[column] = max(last, last * row[column] / free_flow[edge] / low)
            else:
                row[column] = np.interp(starts[column], places[:seen], levels[:seen])


@kernel
def _mean_times(visits: Floats, logs: Floats, times: Floats, starts: Floats) -> float:
    """Return the seconds that so many visits by bin are believed to take in all."""
    total = 0.0
    for column in range(len(visits)):
        if visits[column] > 0.0:
            total += visits[column] * np.interp(np.exp(logs[column]), starts, times)
    return total


@kernel
def _surprised(new: Sums, kept: Sums, known: Bools, spread: float) -> Bools:
    """Say for each road whether its new lessons are far from those that were learned at the same counts."""
    out = np.zeros(len(known), dtype=np.bool_)
    for edge in range(len(known)):
        if not known[edge]:
            continue
        uses = seconds = believed = before = 0.0
        for column in range(new.visits.shape[1]):
            fresh, old = new.visits[edge, column], kept.visits[edge, column]
            if fresh > 0.0 and old >= _ENOUGH:
                uses += fresh
                before += old
                seconds += new.seconds[edge, column]
                believed += fresh * kept.seconds[edge, column] / old
        if uses >= _ENOUGH:
            apart = abs(np.log(seconds / believed))
            doubt = np.sqrt(spread * spread * (1.0 / uses + 1.0 / before) + _SLACK * _SLACK)
            out[edge] = apart > _SHIFT and apart > _SURPRISE * doubt
    return out
