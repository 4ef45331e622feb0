"""Environment x learner x seed -> Run: the one loop, and replications of it on one or more processes."""

import copy
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from operator import index
from typing import Any, TypeAlias

import numpy as np

from routesim.environment import RoundEnvironment, Trace
from routesim.errors import InputError
from routesim.learners.base import Epoch, EpochLearner, Learner
from routesim.planning import plan
from routesim.planning.base import Plan
from routesim.planning.exact import TablePolicy
from routesim.results import Run

EnvironmentMaker: TypeAlias = Callable[[np.random.Generator], RoundEnvironment]
Progress: TypeAlias = Callable[[int], None]

_STRETCH = 1 << 18


def run(
    environment: RoundEnvironment,
    learner: Learner,
    rounds: int,
    seed: int = 0,
    *,
    replication: int = 0,
    comparator: Plan[Any] | None = None,
    compiled: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Let `learner` play `rounds` rounds and return what happened; neither argument changes.

    Every random choice follows from `seed` and the number of the `replication`. `comparator` saves planning
    with the true rewards again if that plan is at hand. `compiled=False` plays epochs step by step too: the same
    numbers, slower. `progress` is called now and then with the number of rounds played since the last call.
    """
    rounds = _at_least_one("rounds", rounds)
    world, player = copy.copy(environment), copy.deepcopy(learner)
    noise_seed, learner_seed = _seeds(seed, replication).spawn(2)
    world.reset(np.random.default_rng(noise_seed))
    player.start(world.task(player.knows), np.random.default_rng(learner_seed))
    trace = Trace.empty(rounds)
    _play(world, player, trace, compiled=compiled, progress=progress)
    if comparator is None:
        comparator = plan(environment.actions, environment.rewards, environment.window)
    details: dict[str, str | int | float | bool] = {"informed": player.knows == "rewards"}
    if hasattr(player, "epochs"):
        details["epochs"] = player.epochs
    return Run(
        learner=type(learner).__name__,
        actions=trace.actions,
        expected_rewards=trace.expected_rewards,
        rewards=trace.rewards,
        comparator_value=comparator.value,
        comparator_bound=comparator.bound,
        seed=seed,
        replication=replication,
        paths=world.paths,
        details=details,
    )


def _play(world: RoundEnvironment, player: Learner, trace: Trace, *, compiled: bool, progress: Progress | None) -> None:
    now, rounds, shown = 0, len(trace.actions), 0
    by_epoch = player if compiled and isinstance(player, EpochLearner) else None
    while now < rounds:
        epoch = by_epoch.epoch(now) if by_epoch else None
        stretch = 0 if epoch is None else _play_epoch(world, epoch, trace.part(now, now + _STRETCH))
        if stretch == 0:
            action = player.choose(world.observe())
            trace.actions[now] = world.number(action)
            feedback = world.step(action)
            player.update(feedback)
            trace.expected_rewards[now] = world.expected_reward
            trace.rewards[now] = feedback.reward
        now += max(1, stretch)
        if progress and (now - shown >= 1 << 12 or now == rounds):
            progress(now - shown)
            shown = now


def _play_epoch(world: RoundEnvironment, epoch: Epoch, trace: Trace) -> int:
    """Play an epoch in one compiled call and return its rounds; 0 if the next round must be a single step."""
    if isinstance(epoch.policy, TablePolicy):
        return world.play(epoch.policy.table, epoch.tally, trace)
    phase = epoch.policy.place(world.observe().history)
    if phase is None:
        return 0  # still on the way to the cycle
    return world.follow(epoch.policy.cycle[phase:] + epoch.policy.cycle[:phase], epoch.tally, trace)


def replicate(
    environment: RoundEnvironment | EnvironmentMaker,
    learner: Learner,
    rounds: int,
    seed: int = 0,
    replications: int = 10,
    workers: int = 1,
    *,
    progress: Progress | None = None,
) -> list[Run]:
    """Return `replications` independent runs, the same ones whatever the number of `workers`.

    A function of a generator in place of the environment draws a new one for each replication. With more than
    one worker a script must start its work under `if __name__ == "__main__":`, as for every use of processes,
    and the function must be importable. `progress` is called with the rounds of each finished run.
    """
    replications = _at_least_one("replications", replications)
    workers = _at_least_one("workers", workers)
    comparator = None
    if isinstance(environment, RoundEnvironment):
        comparator = plan(environment.actions, environment.rewards, environment.window)
    one = partial(_replication, environment, learner, rounds, seed, comparator)
    runs = []
    for finished in _each(one, replications, workers):
        runs.append(finished)
        if progress:
            progress(finished.rounds)
    return runs


def _each(one: Callable[[int], Run], replications: int, workers: int) -> Iterator[Run]:
    if workers == 1 or replications == 1:
        yield from map(one, range(replications))
        return
    # Fresh processes: forking one that has threads, as every progress display does, can hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, replications), mp_context=context) as pool:
        yield from pool.map(one, range(replications))


def _replication(
    environment: RoundEnvironment | EnvironmentMaker,
    learner: Learner,
    rounds: int,
    seed: int,
    comparator: Plan[Any] | None,
    replication: int,
) -> Run:
    if not isinstance(environment, RoundEnvironment):
        (instance_seed,) = _seeds(seed, replication, "instance").spawn(1)
        environment = environment(np.random.default_rng(instance_seed))
    return run(environment, learner, rounds, seed, replication=replication, comparator=comparator)


def _seeds(seed: int, replication: int, stream: str = "run") -> np.random.SeedSequence:
    """Return the root of all chance in one replication; the instance has a stream of its own."""
    try:
        entropy = index(seed)
    except TypeError:
        raise InputError(f"a seed is a whole number, got {seed!r}") from None
    if entropy < 0:
        raise InputError(f"a seed is at least 0, got {entropy}")
    return np.random.SeedSequence(entropy, spawn_key=(replication, ("run", "instance").index(stream)))


def _at_least_one(name: str, value: int) -> int:
    try:
        whole = index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}") from None
    if whole < 1:
        raise InputError(f"{name} must be at least 1, got {whole}")
    return whole
