"""What is served: a city scenario's roads and learner, and the routes between any two of its nodes."""

import hashlib
import json
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.errors import FewerPathsWarning, InputError, ScenarioError
from routesim.experiment import generators
from routesim.learners.base import Learner
from routesim.learners.carcb import CARCB
from routesim.roads.network import RoadNetwork
from routesim.rounds.actions import ActionSet
from routesim.rounds.environment import RoundEnvironment
from routesim.scenario.city import City, CityScenario
from routesim.scenario.files import load_scenario
from routesim.travellers.features import TripSampler

MOST_WINDOW = (1 << 16) - 1  # counts are stored in two bytes
MOST_CELLS = 1 << 24  # edges x counts, of which the mean time is kept
# A service may be asked many times before it hears of the first trip, and an undetermined fit would be an error then.
_RIDGE = 1e-3
_PAIRS = 2  # the stream of chance of pairs other than the scenario's; a run uses 0 and 1


@dataclass(frozen=True, eq=False)
class Served:
    """A city, its congestion, and one learner for each origin-destination pair."""

    title: str
    city: City
    network: RoadNetwork
    seed: int
    learner: Learner
    learner_label: str

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The node indices of the scenario's own trip."""
        path = self._actions(self.city).listed_paths[0]
        return int(self.network.tails[path[0]]), int(self.network.heads[path[-1]])

    @property
    def window(self) -> int:
        """How many recommendations the roads remember."""
        return self.city.window

    @cached_property
    def fingerprint(self) -> str:
        """What a state belongs to: the city with its settings and roads, the seed and the learner."""
        about = {"city": self.city.model_dump(mode="json"), "seed": self.seed, "learner": self.learner_label}
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
        for column in (self.network.tails, self.network.heads, self.network.free_flow_s):
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()

    def rounds(self, start: int, end: int) -> RoundEnvironment:
        """Return the rounds on the routes between two nodes, as the scenario finds and congests them."""
        labels = self.network.labels
        city = self.city
        if (start, end) != self.ends:
            city = city.model_copy(update={"origin": labels[start], "destination": labels[end]})
        return city.environment(self.network, self._actions(city))

    def chance(self, start: int, end: int) -> np.random.Generator:
        """Return the learner's generator for a pair; for the scenario's own the one of its first replication."""
        if (start, end) == self.ends:
            return generators(self.seed, 0)[1]
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(_PAIRS, start, end)))

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of travellers, the most frequent first; none where trips do not differ."""
        who = self.city.travellers
        return () if who is None else tuple(sorted(who.classes, key=lambda name: -who.classes[name]))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that a trip can meet."""
        return () if self.city.travellers is None else tuple(self.city.travellers.conditions)

    def _actions(self, city: City) -> ActionSet:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewerPathsWarning)
            return city.actions(self.network)


def features_of(rounds: RoundEnvironment, columns: frozenset[str]) -> NDArray[np.float64]:
    """Return the features of a trip of this class under these conditions, one row for each edge."""
    sampler: Any = rounds.contexts.source  # type: ignore[attr-defined]  # rounds with travellers have contexts
    if not isinstance(sampler, TripSampler):
        raise InputError("only contexts of travellers can be served")
    trip = [[1.0 if name in columns else 0.0 for name in sampler.features.trip_columns]]
    features: NDArray[np.float64] = sampler.features.block(trip)[0]
    return features


def load_served(name_or_file: str | Path, learner: str | None = None) -> Served:
    """Return what a scenario serves: its first learner that is not informed, or the one of this name."""
    scenario = load_scenario(name_or_file)
    if not isinstance(scenario, CityScenario):
        raise ScenarioError(
            f"{name_or_file} has no roads to serve; `routesim serve` takes a scenario of kind city, such as helsinki"
        )
    usable = {one.label: one for one in scenario.learners if not one.traits.informed}
    if not usable:
        raise ScenarioError(f"{name_or_file} has only informed learners, which know what nobody knows; add another")
    if learner is None:
        choice = next(iter(usable.values()))
    else:
        found = [one for label, one in usable.items() if learner in (label, one.name)]
        if not found:
            raise ScenarioError(f"{name_or_file} has no learner {learner!r} to serve; it has {', '.join(usable)}")
        choice = found[0]
    city, network = scenario.city, scenario.city.network()
    most = min(MOST_WINDOW, MOST_CELLS // network.n_edges - 1)
    if city.window > most:
        raise ScenarioError(f"a service on these roads remembers at most {most} recommendations, got {city.window}")
    if city.method == "graph":
        raise ScenarioError('a service recommends one of a list of routes; use another method than "graph"')
    if city.travellers is not None:
        # Who comes next is not known to a service.
        city = city.model_copy(update={"travellers": city.travellers.model_copy(update={"contexts": "stochastic"})})
    player = choice.make()
    if isinstance(player, CARCB) and player.ridge == 0:
        player = replace(player, ridge=_RIDGE)
    return Served(scenario.title, city, network, scenario.seed, player, choice.label)
