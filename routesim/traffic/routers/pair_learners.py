"""PairLearnersRouter: a learner of the rounds for every OD pair."""

import copy
from dataclasses import dataclass, field
from operator import index

import numpy as np

from routesim.errors import InputError
from routesim.learners.base import Learner, Traits
from routesim.registry import IN_PYTHON
from routesim.rounds import environment
from routesim.traffic.protocol import Departures, Driven, Routes, TrafficTask
from routesim.traffic.routers.base import Feedback
from routesim.traffic.routers.od_pairs import candidates, pair_numbers


@dataclass
class PairLearnersRouter:
    """A copy of a learner for every OD pair, which chooses among up to `k` paths that differ.

    A trip teaches its learner when it ends, with the travel time of each edge as a negative reward: late, and in
    another order than the trips began. One that left its path on the way teaches nothing. The learner sees the present
    counts of its edges, and no history.
    """

    learner: Learner = field(metadata=IN_PYTHON)
    k: int = 8
    max_overlap: float = 0.75

    interval_s: float | None = field(init=False, default=0.0)
    feedback: Feedback = field(init=False, default="all")

    def __post_init__(self) -> None:
        if not self.serves(self.learner):
            needs, instead = str(Traits.of(self.learner).knows), "PlannedRouter(), which knows BPR"
            if Traits.of(self.learner).needs_contexts:
                needs, instead = "features", "CARCBRouter(), which learns what travellers' trips cost"
            raise InputError(
                f"{type(self.learner).__name__} needs the {needs} of rounds and has no counterpart in traffic; "
                f"use {instead}"
            )

    @staticmethod
    def serves(learner: object) -> bool:
        """Say whether traffic can tell a learner, or a class of learners, all that it needs."""
        traits = Traits.of(learner)
        return not traits.needs_contexts and traits.knows in ("nothing", "free_flow")

    @property
    def learns(self) -> bool:
        """Whether the learner does."""
        return Traits.of(self.learner).learns

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:
        """Begin a run with no pair known."""
        self._task, self._rng = task, rng
        self._learners: dict[int, tuple[environment.Task, Learner]] = {}
        self._rounds: dict[int, int] = {}
        self._driving: dict[int, tuple[int, int, list[float], list[int]]] = {}

    def route(self, departures: Departures) -> Routes:
        """Ask the learner of each vehicle's pair."""
        counts = self._task.counts()
        paths = []
        numbers = pair_numbers(departures, self._task.network.n_nodes)
        for vehicle, pair in zip(departures.vehicles.tolist(), numbers.tolist(), strict=True):
            if pair not in self._learners:
                self._learners[pair] = self._meet(pair)
            task, learner = self._learners[pair]
            now = self._rounds.get(pair, 0)
            self._rounds[pair] = now + 1
            seen = np.minimum(counts[task.actions.edges], task.window)
            action = index(learner.choose(environment.Observation(now, (), seen)))  # type: ignore[arg-type]  # a listed action is a number
            self._driving[vehicle] = (pair, action, [], [])
            paths.append(task.actions.listed_paths[action])
        return Routes.of(paths, np.arange(len(paths)))

    def learn(self, driven: Driven) -> None:
        """Collect the edges of each trip; at its last edge, show the learner of its pair the whole of it.

        A vehicle that was sent by another router, or left the path that it was sent down, teaches nothing.
        """
        columns = (driven.vehicles, driven.edges, driven.counts, driven.travel_time_s)
        for vehicle, edge, count, time_s in zip(*(column.tolist() for column in columns), strict=True):
            if vehicle not in self._driving:
                continue
            pair, action, rewards, counts = self._driving[vehicle]
            task, learner = self._learners[pair]
            path = task.actions.listed_paths[action]
            if edge != path[len(rewards)]:
                del self._driving[vehicle]
                continue
            rewards.append(-time_s)
            counts.append(count)
            if len(rewards) == len(path):
                positions = task.actions.positions(action)
                met, paid = np.minimum(np.array(counts, dtype=np.int32), task.window), np.array(rewards)
                learner.update(environment.Feedback(action, float(paid.sum()), positions, met, paid))
                del self._driving[vehicle]

    def _meet(self, pair: int) -> tuple[environment.Task, Learner]:
        actions = candidates(self._task, pair, self.k, self.max_overlap)
        free_flow = self._task.network.free_flow_s[actions.edges]
        # The scale of what is not known about an edge: its noise, and where there is little, its free-flow time.
        scale = free_flow * max(self._task.noise, 1.0)
        known = -free_flow if self.learner.knows == "free_flow" else None
        task = environment.Task(actions, 0, np.full(len(free_flow), -np.inf), -free_flow, scale, known)
        learner = copy.deepcopy(self.learner)
        learner.start(task, self._rng.spawn(1)[0])
        return task, learner
