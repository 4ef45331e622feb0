"""Units: the single runs that a scenario consists of, each run in any process and read again from its folder."""

import re
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from routesim.errors import CapacityWarning, InputError
from routesim.experiment import Comparator, Progress, compare, instance, run
from routesim.results.link_tables import tables_of
from routesim.results.run import Run, Scalar
from routesim.results.thinned_traffic import TrafficRun
from routesim.rounds.contextual import ContextualEnvironment
from routesim.rounds.environment import RoundEnvironment
from routesim.scenario.city import CityScenario
from routesim.scenario.demands import bin_seconds
from routesim.scenario.files import fingerprint
from routesim.scenario.kinds import AnyScenario
from routesim.scenario.traffic import TrafficScenario
from routesim.traffic.simulator import TrafficSimulator

Part: TypeAlias = Run | TrafficRun
Made = TypeVar("Made")

KEPT_ROWS = 10_000


@dataclass(frozen=True)
class Unit:
    """One run: a learner of the scenario in one of its settings, in one replication.

    `label` is the learner as people read it. `total` is how much progress it reports in all: its rounds, or the
    vehicles to be expected (1 if not known).
    """

    scenario: AnyScenario
    setting_number: int
    setting: tuple[tuple[str, Scalar], ...]
    learner: int
    label: str
    replication: int
    total: int

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> str:
        """A name that no other unit of the scenario has, fit for a folder."""
        safe = re.sub(r"[^A-Za-z0-9]+", "-", self.scenario.learners[self.learner].name)
        return f"s{self.setting_number}-l{self.learner}-{safe}-r{self.replication:05d}"

    def run(self, checkpoint: Path | None = None, progress: Progress | None = None) -> Part:
        """Run it; rounds go on from a `checkpoint` file that an interrupted run left, and traffic starts over."""
        if isinstance(self.scenario, TrafficScenario):
            return _drive(self, self.scenario, progress)
        environment, comparator = _world(self)
        played = run(
            environment,
            self.scenario.learners[self.learner].make(),
            self.scenario.rounds,
            self.scenario.seed,
            replication=self.replication,
            comparator=comparator,
            progress=progress,
            keep=KEPT_ROWS,
            checkpoint=checkpoint,
        )
        return replace(played, network=None)  # the scenario knows its roads: no part stores them again

    def load(self, folder: Path) -> Part:
        """Return the part that `save` of what `run` returned wrote."""
        return TrafficRun.load(folder) if isinstance(self.scenario, TrafficScenario) else Run.load(folder)


def units(scenario: AnyScenario) -> list[Unit]:
    """Return the single runs of a scenario without a sweep; a mistake in its roads or demand shows here."""
    if scenario.sweep:
        raise InputError("a sweep has units at each of its points; see `points`")
    total = 1
    if isinstance(scenario, TrafficScenario):
        total = max(1, round(float(simulator(scenario).demand.vehicles.sum())))
        numbered: list[dict[str, Scalar]] = [{}]
    else:
        total = scenario.rounds
        numbered = [words for words, _ in _settings(scenario)]
    labels = [choice.label for choice in scenario.learners]
    return [
        Unit(scenario, number, tuple(words.items()), learner, label, replication, total)
        for number, words in enumerate(numbered)
        for replication in range(scenario.replications)
        for learner, label in enumerate(labels)
    ]


def simulator(scenario: TrafficScenario) -> TrafficSimulator:
    """Return the simulator of a scenario, made once in each process."""

    def make() -> TrafficSimulator:
        world = scenario.traffic.simulator(scenario.rounds, scenario.incidents)
        world.bin_s = bin_seconds(world.demand.end_s - world.demand.start_s)
        return world

    return _remembered((fingerprint(scenario), "simulator"), make)


def city_environment(scenario: CityScenario) -> RoundEnvironment:
    """Return the rounds of a city scenario, made once in each process."""

    def make() -> RoundEnvironment:
        network = scenario.city.network()
        return scenario.city.environment(network, scenario.city.actions(network))

    return _remembered((fingerprint(scenario), "environment"), make)


def _settings(scenario: Any) -> list[Any]:
    if isinstance(scenario, CityScenario):
        return [({}, city_environment(scenario))]
    settings: list[Any] = getattr(scenario, scenario.section).settings()
    return settings


def _world(unit: Unit) -> tuple[RoundEnvironment, Comparator]:
    """Return what a unit is played in and compared with; units that share it make it once in each process."""
    scenario, seed, replication = unit.scenario, unit.scenario.seed, unit.replication
    rounds = scenario.rounds or 1
    _, source = _settings(scenario)[unit.setting_number]
    drawn = not isinstance(source, RoundEnvironment)
    environment = instance(source, seed, replication) if drawn else source
    own = drawn or isinstance(environment, ContextualEnvironment)
    key = (fingerprint(scenario), unit.setting_number, replication if own else -1)
    return environment, _remembered(
        key, lambda: compare(environment, rounds, seed, replication if own else 0, keep=KEPT_ROWS)
    )


def replication_seed(scenario: TrafficScenario, replication: int) -> int:
    """Return the seed of a replication; they differ in all that chance decides: trips, noise, the router's choices."""
    stream = np.random.SeedSequence(scenario.seed, spawn_key=(replication,))
    return int(stream.generate_state(1, np.uint64)[0]) >> 1


def measured_times(scenario: TrafficScenario) -> tuple[float, float]:
    """Return from when to when a trip departs to be measured."""
    roads = scenario.traffic
    return roads.measure_from_s, np.inf if roads.measure_to_s is None else roads.measure_to_s


def _drive(unit: Unit, scenario: TrafficScenario, progress: Progress | None) -> TrafficRun:
    seed, world = replication_seed(scenario, unit.replication), simulator(scenario)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)  # the summary has its figures
        traffic = world.run(scenario.learners[unit.learner].make(), seed)
    if progress:
        progress(unit.total)
    # The bin in which the demand begins is the same for all units.
    thinned = TrafficRun.of(traffic, *measured_times(scenario), first_bin=int(world.demand.start_s // world.bin_s))
    roads = scenario.traffic
    tables = tables_of(
        traffic, selected=roads.selected(world.network), counts=roads.counts, from_s=world.demand.start_s
    )
    return replace(thinned, tables=tables)


_MEMORY: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
_MOST_REMEMBERED = 8


def _remembered(key: tuple[Any, ...], make: Callable[[], Made]) -> Made:
    if key not in _MEMORY:
        _MEMORY[key] = make()
        while len(_MEMORY) > _MOST_REMEMBERED:
            _MEMORY.popitem(last=False)
    _MEMORY.move_to_end(key)
    made: Made = _MEMORY[key]
    return made
