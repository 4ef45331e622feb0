"""Gymnasium environments: rounds on a set of paths, and the departures of the traffic simulator.

They need the extra `gym`. In both an action is the number of a path among those of the OD pair that is served,
the quickest on empty roads first; a number past the last path starts again at the first, so every action is allowed.
"""

import copy
from collections.abc import Generator
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.envs.registration import EnvSpec
except ModuleNotFoundError as missing:
    advice = "install it with: pip install 'routesim[gym]'"
    raise ModuleNotFoundError(f"these environments need {missing.name}; {advice}", name=missing.name) from None

from routesim.checks import number, whole
from routesim.errors import InputError
from routesim.experiment import generators
from routesim.rounds.actions import ActionSet
from routesim.rounds.contextual import ContextualEnvironment
from routesim.rounds.environment import RoundEnvironment
from routesim.traffic.protocol import Departures, Driven, Routes, TrafficTask
from routesim.traffic.result import Traffic
from routesim.traffic.routers.od_pairs import candidates
from routesim.traffic.simulator import Simulation, TrafficSimulator

Seen: TypeAlias = dict[str, Any]
Step: TypeAlias = tuple[Seen, float, bool, bool, dict[str, Any]]

_UNBOUNDED = 1e9  # spaces have bounds, and no time or feature of use is larger


class RoundsEnv(gymnasium.Env[Seen, np.int64]):
    """The rounds of a RoundEnvironment or ContextualEnvironment, one step a round, truncated after `rounds`.

    The reward is the one paid in the round, noise included; `info["expected_reward"]` is its mean. `reset(seed=s)`
    begins the rounds that `rs.run(environment, learner, rounds, seed=s)` plays: the same actions are paid the same.

    An observation holds `counts` (of every edge in the window), `last` (the actions of the window, the latest last, -1
    before the first round) where there is a window, `pair` (the OD pair to serve) where there are several, and
    `features` (a row for each edge) where rounds have contexts. After the last round the features are zeros.

    `info` after a step: `expected_reward`, `edges` (positions of the edges used), `counts` and `edge_rewards` on them.

    >>> import routesim as rs
    >>> two_roads = rs.RoundEnvironment.from_congestion(
    ...     rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), window=2, noise_std=0.1
    ... )
    >>> env = RoundsEnv(two_roads, rounds=100)
    >>> seen, _ = env.reset(seed=0)
    >>> seen, reward, terminated, truncated, info = env.step(0)
    >>> seen["counts"].tolist(), info["expected_reward"]
    ([1, 0], 0.9)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as in the class it extends

    def __init__(self, environment: RoundEnvironment, rounds: int = 1000) -> None:
        self._world, self.rounds = copy.copy(environment), whole("rounds", rounds, least=1)
        actions, window = environment.actions, environment.window
        n_paths = actions.n_listed  # refuses a whole graph, whose paths have no numbers
        self._numbers: tuple[range, ...] = actions.parts
        self.action_space = spaces.Discrete(max(len(numbers) for numbers in self._numbers))
        seen: dict[str, spaces.Space[Any]] = {"counts": spaces.Box(0, max(1, window), (actions.n_edges,), np.int32)}
        if window > 0:
            seen["last"] = spaces.Box(-1, n_paths - 1, (window,), np.int64)
        if actions.n_pairs > 1:
            seen["pair"] = spaces.Discrete(actions.n_pairs)
        if isinstance(environment, ContextualEnvironment):
            bound = _UNBOUNDED if environment.contexts.lengths == "keep" else 1.0
            seen["features"] = spaces.Box(-bound, bound, (actions.n_edges, len(environment.theta)), np.float64)
        self._boxes, self.observation_space = seen, spaces.Dict(seen)
        self.spec = EnvSpec(
            "routesim/Rounds-v0",
            entry_point="routesim.gym:RoundsEnv",
            kwargs={"environment": environment, "rounds": rounds},
        )
        self._now = self.rounds

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Empty the roads and begin at round 0; without a seed, with one drawn from the last."""
        super().reset(seed=seed, options=options)
        drawn = int(self.np_random.integers(1 << 32)) if seed is None else seed
        self._world.reset(generators(drawn, 0)[0], self.rounds)
        self._now = 0
        return self._seen(), {}

    def step(self, action: np.int64) -> Step:
        """Play a path for one round."""
        if self._now >= self.rounds:
            raise InputError("this episode has ended, or none has begun; call reset")
        numbers = self._numbers[self._pair]
        feedback = self._world.step(numbers[whole("an action", action, least=0) % len(numbers)])
        self._now += 1
        info = {
            "expected_reward": self._world.expected_reward,
            "edges": feedback.edges.copy(),
            "counts": feedback.counts,
            "edge_rewards": feedback.rewards,
        }
        return self._seen(), feedback.reward, False, self._now == self.rounds, info

    def _seen(self) -> Seen:
        boxes = self._boxes
        over = self._now == self.rounds
        # Known contexts end with the rounds, so there the plain observation is all there is.
        seen = self._world.observe_roads() if over else self._world.observe()
        self._pair = seen.pair
        parts: Seen = {"counts": seen.counts.copy()}
        if "last" in boxes:
            parts["last"] = np.full(self._world.window, -1, dtype=np.int64)
            parts["last"][self._world.window - len(seen.history) :] = seen.history
        if "pair" in boxes:
            parts["pair"] = np.int64(seen.pair)
        if "features" in boxes:
            shape = boxes["features"].shape
            parts["features"] = np.zeros(shape) if seen.features is None else seen.features.copy()
        return parts


class TrafficEnv(gymnasium.Env[Seen, np.int64]):
    """The traffic of a TrafficSimulator, one step a departing vehicle, which is sent down one of up to `k` paths.

    The reward is minus the travel times, in seconds, of the trips that ended since the step before. When the last
    vehicle has been sent the roads empty, so the rewards of an episode add up to minus `total_travel_time_s`. The
    episode ends there, or is truncated at `until_s`; the run is then in `traffic`.

    An observation holds `clock_s`, the ends as node indices (`origin`, `destination`), and for each of the k paths
    `free_flow_s`, `now_s` (its time if nothing changed from the present counts), `entries` (into its edges within the
    window) and `paths`: 1 where there is such a path. Where there is none, and after the end, everything is 0.

    `info` has the number of the `vehicle` to send, and after a step `ended`, the number of trips that ended.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as in the class it extends

    def __init__(
        self, simulator: TrafficSimulator, k: int = 4, *, max_overlap: float = 0.75, until_s: float | None = None
    ) -> None:
        self._simulator, self.k = simulator, whole("k", k, least=1)
        self._max_overlap = number("max_overlap", max_overlap, least=0, most=1)
        if until_s is not None and not until_s > 0:
            raise InputError(f"until_s must be above 0, got {until_s}")
        self._until_s = until_s
        n_nodes = simulator.network.n_nodes
        self.action_space = spaces.Discrete(self.k)
        amounts = spaces.Box(0.0, _UNBOUNDED, (self.k,), np.float64)
        self.observation_space = spaces.Dict(
            {
                "clock_s": spaces.Box(0.0, _UNBOUNDED, (1,), np.float64),
                "origin": spaces.Discrete(n_nodes),
                "destination": spaces.Discrete(n_nodes),
                "free_flow_s": amounts,
                "now_s": copy.deepcopy(amounts),
                "entries": copy.deepcopy(amounts),
                "paths": spaces.MultiBinary(self.k),
            }
        )
        self.spec = EnvSpec(
            "routesim/Traffic-v0",
            entry_point="routesim.gym:TrafficEnv",
            kwargs={"simulator": simulator, "k": k, "max_overlap": max_overlap, "until_s": until_s},
        )
        self._choices: dict[tuple[int, int], ActionSet] = {}
        self._asked: Departures | None = None
        self.traffic: Traffic | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Empty the roads and drive to the first departure; the trips and their noise follow from the seed."""
        super().reset(seed=seed, options=options)
        drawn = int(self.np_random.integers(1 << 32)) if seed is None else seed
        self._desk = StepwiseRouter()
        self._simulation = Simulation(self._simulator, self._desk, drawn, self._until_s)
        self._questions: Generator[Departures, Routes, None] = self._simulation.questions()
        self.traffic = None
        self._asked = next(self._questions, None)
        if self._asked is None:
            raise InputError("the demand has no vehicle that departs, so there is nothing to decide; add trips")
        return self._seen(), self._info()

    def step(self, action: np.int64) -> Step:
        """Send the vehicle down a path, and drive to the next departure."""
        if self._asked is None:
            raise InputError("this episode has ended, or none has begun; call reset")
        paths = self._paths(self._asked).listed_paths
        path = paths[whole("an action", action, least=0) % len(paths)]
        try:
            self._asked = self._questions.send(Routes.of([path], [0]))
        except StopIteration:
            self._asked = None
            self.traffic = self._simulation.traffic()
        ended, seconds = self._desk.trips_ended(self._simulation)
        cut = self.traffic is not None and not bool(self.traffic.arrived.all())
        info = {**self._info(), "ended": ended}
        return self._seen(), -seconds, self._asked is None and not cut, cut, info

    def _paths(self, asked: Departures) -> ActionSet:
        ends = int(asked.origins[0]), int(asked.destinations[0])
        if ends not in self._choices:
            pair = ends[0] * self._simulator.network.n_nodes + ends[1]
            self._choices[ends] = candidates(self._desk.task, pair, self.k, self._max_overlap)
        return self._choices[ends]

    def _info(self) -> dict[str, Any]:
        return {} if self._asked is None else {"vehicle": int(self._asked.vehicles[0])}

    def _seen(self) -> Seen:
        """Return the present, or zeros after the end."""
        none = np.int64(0)
        parts: Seen = {"clock_s": np.zeros(1), "origin": none, "destination": none}
        parts |= {name: np.zeros(self.k) for name in ("free_flow_s", "now_s", "entries")}
        parts["paths"] = np.zeros(self.k, dtype=np.int8)
        if self._asked is None:
            return parts
        actions, task = self._paths(self._asked), self._desk.task
        counts = task.counts()[actions.edges]
        free_flow = task.network.free_flow_s[actions.edges]
        columns = {
            "free_flow_s": free_flow,
            "now_s": free_flow * task.multiplier(actions.edges, counts),
            "entries": counts.astype(np.float64),
        }
        for name, by_edge in columns.items():
            sums = np.add.reduceat(by_edge[actions.indices], actions.indptr[:-1])
            parts[name][: len(sums)] = np.minimum(sums, _UNBOUNDED)
        parts["paths"][: actions.n_listed] = 1
        parts["clock_s"][0] = self._asked.now_s
        parts["origin"] = np.int64(self._asked.origins[0])
        parts["destination"] = np.int64(self._asked.destinations[0])
        return parts


class StepwiseRouter:
    """Stands where the simulator expects a router: keeps its task, and the edges driven since the last step."""

    interval_s: float | None = 0.0
    feedback: Literal["none", "lessons", "all"] = "all"

    def start(self, task: TrafficTask, rng: np.random.Generator) -> None:  # noqa: ARG002 - decisions come from outside
        """Keep the task."""
        self.task = task
        self._simulationn: list[Driven] = []

    def route(self, departures: Departures) -> Routes:  # noqa: ARG002 - as a router is called
        """Refuse: the questions are answered by whoever drives."""
        raise InputError("TrafficEnv answers the simulator's questions itself")

    def learn(self, driven: Driven) -> None:
        """Keep what was driven until the step ends."""
        self._simulationn.append(driven)

    def trips_ended(self, simulation: Simulation) -> tuple[int, float]:
        """Return how many trips ended since the last call, and their seconds."""
        setting, count, seconds = simulation.setting, 0, 0.0
        for driven in self._simulationn:
            over: NDArray[np.bool_] = setting.network.heads[driven.edges] == setting.destinations[driven.vehicles]
            arrival_s = driven.entered_s[over] + driven.travel_time_s[over]
            count += int(over.sum())
            seconds += float((arrival_s - setting.departure_s[driven.vehicles[over]]).sum())
        self._simulationn.clear()
        return count, seconds
