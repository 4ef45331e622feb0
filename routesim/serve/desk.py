"""The desk: which route to recommend, and what an observation teaches. It knows no clock, no network and no disk.

The counts are those of the last `window` recommendations of all pairs together. Each pair of ends has a copy of the
learner, which goes by the pair's own last `window` recommendations and by the counts. With one pair this is what
`rs.run` plays. The same calls in the same order always give the same answers, so a log of them is the state.
"""

import copy
from collections import deque
from dataclasses import dataclass, field
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.errors import InputError, ResultsError
from routesim.learners.base import Learner
from routesim.rounds.environment import Feedback, Observation, RoundEnvironment
from routesim.rounds.window import enter, leave
from routesim.serve.served import Served, features_of
from routesim.storage.state import Resumable, State, check_numbers, join, named, part, resumable, taken, whole_from

Ends = tuple[int, int]


class Decision(NamedTuple):
    """A recommendation: of which ends, to whom, which action, and the counts that its edges had then."""

    ends: Ends
    traveller: tuple[str, ...]
    action: int
    counts: NDArray[np.int32]
    expected_s: float


@dataclass(eq=False)
class Pair:
    """The routes between two nodes and the learner that chooses among them."""

    ends: Ends
    rounds: RoundEnvironment
    learner: Learner
    asked: int = 0
    recent: deque[int] = field(default_factory=deque)

    @classmethod
    def meet(cls, served: Served, ends: Ends) -> "Pair":
        """Find the routes of a pair, and start a learner that knows nothing."""
        rounds, learner = served.rounds(*ends), copy.deepcopy(served.learner)
        learner.start(rounds.task(learner.knows), served.chance(*ends))
        return cls(ends, rounds, learner, recent=deque(maxlen=served.window))

    @property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The routes, as edge indices of the network."""
        return self.rounds.actions.listed_paths

    def features(self, traveller: tuple[str, ...]) -> NDArray[np.float64] | None:
        """Return the features of a trip on every edge of the pair; None where trips do not differ."""
        return features_of(self.rounds, frozenset(traveller)) if traveller else None


class Desk:
    """All pairs met so far, the counts on the roads, and the mean times seen by edge and count."""

    def __init__(self, served: Served) -> None:
        n_edges = served.network.n_edges
        self.served = served
        self.pairs: dict[Ends, Pair] = {}
        self.counts = np.zeros(n_edges, dtype=np.int32)
        self.window: deque[tuple[Ends, int]] = deque()
        self.visits = np.zeros((n_edges, served.window + 1), dtype=np.int64)
        self.sums = np.zeros((n_edges, served.window + 1))
        self.recommended = self.observed = 0

    def add(self, pair: Pair) -> None:
        """Take in a pair that has just been met."""
        self.pairs.setdefault(pair.ends, pair)

    def recommend(self, ends: Ends, traveller: tuple[str, ...] = ()) -> Decision:
        """Recommend a route and put it on the roads."""
        return self._put(ends, traveller, self._choice(ends, traveller))

    def tell(self, decision: Decision) -> bool:
        """Repeat a recommendation that was made; return whether it would be another now. The one made holds."""
        paths = self.pairs[decision.ends].paths
        if not (0 <= decision.action < len(paths) and len(paths[decision.action]) == len(decision.counts)):
            raise ResultsError("the state does not fit: the routes found now are not those recommended then")
        choice = self._choice(decision.ends, decision.traveller)
        self._put(decision.ends, decision.traveller, decision.action)
        return choice != decision.action

    def _choice(self, ends: Ends, traveller: tuple[str, ...]) -> int:
        pair = self.pairs[ends]
        actions = pair.rounds.actions
        seen = Observation(
            pair.asked, tuple(pair.recent), self.counts[actions.edges], features=pair.features(traveller)
        )
        return index(pair.learner.choose(seen))  # type: ignore[arg-type]  # listed actions are numbers

    def _put(self, ends: Ends, traveller: tuple[str, ...], action: int) -> Decision:
        pair = self.pairs[ends]
        path = np.array(pair.paths[action])
        counts = self.counts[path]
        model = -pair.rounds.rewards[pair.rounds.actions.positions(action), counts]
        visits = self.visits[path, counts]
        expected = np.where(visits > 0, self.sums[path, counts] / np.maximum(1, visits), model)
        pair.asked += 1
        pair.recent.append(action)
        self.recommended += 1
        if self.served.window > 0:
            enter(self.counts, path)
            self.window.append((ends, action))
            if len(self.window) > self.served.window:
                old_ends, old = self.window.popleft()
                leave(self.counts, np.array(self.pairs[old_ends].paths[old]))
        return Decision(ends, traveller, action, counts, float(expected.sum()))

    def observe(self, decision: Decision, seconds: NDArray[np.float64], *, total: bool) -> None:
        """Learn from a trip: the seconds on each edge, or those in all, shared out like the free-flow times."""
        pair = self.pairs[decision.ends]
        path = np.array(pair.paths[decision.action])
        if total:
            free_flow = self.served.network.free_flow_s[path]
            seconds = seconds[0] * free_flow / free_flow.sum()
        elif len(seconds) != len(path):
            raise InputError(f"the route has {len(path)} edges, and {len(seconds)} times were given; give one for each")
        positions = pair.rounds.actions.positions(decision.action)
        features = pair.features(decision.traveller)
        pair.learner.update(
            Feedback(
                decision.action,
                -float(seconds.sum()),
                positions,
                decision.counts,
                -seconds,
                None if features is None else features[positions],
            )
        )
        self.visits[path, decision.counts] += 1
        self.sums[path, decision.counts] += seconds
        self.observed += 1

    @property
    def resumable(self) -> bool:
        """Whether `state` can say everything: a learner of one's own may have none."""
        return resumable(self.served.learner)

    def state(self) -> State:
        """Return all that recommendations and observations have changed."""
        pairs = list(self.pairs.values())
        numbers = {pair.ends: number for number, pair in enumerate(pairs)}
        own: State = {
            "ends": np.array([pair.ends for pair in pairs], dtype=np.int64).reshape(-1, 2),
            "window": np.array([(numbers[ends], action) for ends, action in self.window], dtype=np.int64).reshape(
                -1, 2
            ),
            "visits": self.visits.copy(),
            "sums": self.sums.copy(),
            "totals": np.array([self.recommended, self.observed]),
        }
        for number, pair in enumerate(pairs):
            if not isinstance(pair.learner, Resumable):
                raise InputError(f"{type(pair.learner).__name__} has no state to keep")
            recent = {"asked": np.array(pair.asked), "recent": np.array(pair.recent, dtype=np.int64)}
            own |= join(**{f"pair{number}": {**recent, **join(learner=pair.learner.state())}})
        return own

    def restore(self, state: State) -> None:
        """Take up a state, at a desk that nobody has asked yet."""
        pairs = []
        n_nodes = self.served.network.n_nodes
        ends = named(state, "ends", np.int64, 2)
        check_numbers("ends", ends, n_nodes)
        for number, (start, end) in enumerate(ends.tolist()):
            pair, saved = Pair.meet(self.served, (start, end)), part(state, f"pair{number}")
            if not isinstance(pair.learner, Resumable):
                raise InputError(f"{type(pair.learner).__name__} has no state to take up")
            pair.learner.restore(part(saved, "learner"))
            recent = named(saved, "recent", np.int64, 1)
            check_numbers("recent", recent, len(pair.paths))
            pair.asked = whole_from(saved, "asked", 0, 1 << 62)
            pair.recent.extend(recent.tolist())
            self.add(pair)
            pairs.append(pair)
        self.visits, self.sums = taken(state, "visits", self.visits), taken(state, "sums", self.sums)
        self.recommended, self.observed = named(state, "totals", np.int64, 1).tolist()
        for number, action in named(state, "window", np.int64, 2).tolist():
            if not (0 <= number < len(pairs) and 0 <= action < len(pairs[number].paths)):
                raise ResultsError("the state does not fit: the window holds a route that is not there")
            self.window.append((pairs[number].ends, action))
            enter(self.counts, np.array(pairs[number].paths[action]))

    def loads(self) -> list[tuple[int, int]]:
        """Return the edges in use with their counts."""
        used = np.flatnonzero(self.counts)
        return list(zip(used.tolist(), self.counts[used].tolist(), strict=True))
