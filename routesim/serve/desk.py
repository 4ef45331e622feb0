"""The desk: which route to recommend, and what an observation teaches. It knows no clock, no network and no disk.

The counts are those of the last `window` recommendations of all pairs together. Each origin-destination pair has a
copy of the learner, which goes by the pair's own last `window` recommendations and by the counts. With one pair this
is what `rs.run` plays. The same calls in the same order always give the same answers, so a log of them is the state.

A pair can be evicted, and its learner is gone with it. The mean times by edge and count belong to all pairs and stay.
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
from routesim.storage.state import (
    Resumable,
    State,
    check_numbers,
    join,
    named,
    pack_rows,
    part,
    resumable,
    taken,
    unpack_rows,
    whole_from,
)

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


def path_of(pair: Pair, decision: Decision) -> tuple[int, ...]:
    """Return the edges of a recommended route, or refuse a decision that is of other routes than these."""
    paths = pair.paths
    if not (0 <= decision.action < len(paths) and len(paths[decision.action]) == len(decision.counts)):
        raise ResultsError("the state does not fit: the routes found now are not those recommended then")
    return paths[decision.action]


class Desk:
    """The pairs with a learner, those asked for last at the end; the counts; the mean times seen by edge and count."""

    def __init__(self, served: Served) -> None:
        n_edges = served.network.n_edges
        self.served = served
        self.pairs: dict[Ends, Pair] = {}
        self.counts = np.zeros(n_edges, dtype=np.int32)
        self.window: deque[tuple[int, ...]] = deque()
        self.visits = np.zeros((n_edges, served.window + 1), dtype=np.int64)
        self.sums = np.zeros((n_edges, served.window + 1))
        self.recommended = self.observed = 0

    def add(self, pair: Pair) -> None:
        """Take in a pair that has just been met."""
        self.pairs.setdefault(pair.ends, pair)

    def least_used(self) -> Ends | None:
        """Return the pair to evict first: the longest unused of those used once, else of all but the scenario's own."""
        others = [ends for ends in self.pairs if ends != self.served.ends]
        return next((ends for ends in others if self.pairs[ends].asked <= 1), others[0] if others else None)

    def evict(self, ends: Ends) -> None:
        """Forget the learner of a pair; what was seen of its edges, and its routes in the window, stay."""
        if self.pairs.pop(ends, None) is None:
            raise ResultsError(f"the state does not fit: the pair {ends} is evicted, and was not there")

    def recommend(self, ends: Ends, traveller: tuple[str, ...] = ()) -> Decision:
        """Recommend a route and put it on the roads."""
        return self._put(ends, traveller, self._choice(ends, traveller))

    def tell(self, decision: Decision) -> bool:
        """Repeat a recommendation that was made; return whether it would be another now. The one made holds."""
        path_of(self.pairs[decision.ends], decision)
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
        pair = self.pairs[ends] = self.pairs.pop(ends)  # the last of the dictionary: used just now
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
            self.window.append(pair.paths[action])
            if len(self.window) > self.served.window:
                leave(self.counts, np.array(self.window.popleft()))
        return Decision(ends, traveller, action, counts, float(expected.sum()))

    def observe(
        self, decision: Decision, seconds: NDArray[np.float64], *, total: bool, pair: Pair | None = None
    ) -> None:
        """Learn from a trip: the seconds on each edge, or those in all, shared out like the free-flow times.

        Where the pair is not here any more, the one given has its routes; then only the edges are learned about.
        """
        learner = self.pairs[decision.ends].learner if decision.ends in self.pairs else None
        pair = self.pairs.get(decision.ends, pair)
        if pair is None:
            raise ResultsError(f"the state does not fit: the pair {decision.ends} is observed, and is not there")
        path = np.array(pair.paths[decision.action])
        if total:
            free_flow = self.served.network.free_flow_s[path]
            seconds = seconds[0] * free_flow / free_flow.sum()
        elif len(seconds) != len(path):
            raise InputError(f"the route has {len(path)} edges, and {len(seconds)} times were given; give one for each")
        if learner is not None:
            positions = pair.rounds.actions.positions(decision.action)
            features = pair.features(decision.traveller)
            learner.update(
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
        own: State = {
            "ends": np.array([pair.ends for pair in pairs], dtype=np.int64).reshape(-1, 2),
            **join(window=pack_rows(self.window)),
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
        self.visits, self.sums = taken(state, "visits", self.visits), taken(state, "sums", self.sums)
        self.recommended, self.observed = named(state, "totals", np.int64, 1).tolist()
        for path in unpack_rows(part(state, "window"), self.served.network.n_edges):
            self.window.append(path)
            enter(self.counts, np.array(path))

    def loads(self) -> list[tuple[int, int]]:
        """Return the edges in use with their counts."""
        used = np.flatnonzero(self.counts)
        return list(zip(used.tolist(), self.counts[used].tolist(), strict=True))
