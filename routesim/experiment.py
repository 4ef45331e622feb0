"""Environment x learner x seed -> Run: the one loop, and replications of it on one or more processes."""

import copy
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.checks import whole
from routesim.contextual import ContextualEnvironment, ContextualPolicy, Fit
from routesim.environment import RoundEnvironment, Tally, Trace
from routesim.errors import InputError
from routesim.learners.base import Epoch, EpochLearner, Learner
from routesim.learners.baselines import Oracle
from routesim.planning import plan
from routesim.planning.base import Plan
from routesim.planning.contextual import ContextualPlanner
from routesim.planning.exact import TablePolicy, fits
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
    comparator: "Plan[Any] | Comparator | None" = None,
    compiled: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Let `learner` play `rounds` rounds and return what happened; neither argument changes.

    Every random choice follows from `seed` and the number of the `replication`. `comparator` saves planning with the
    true rewards again if that plan, or what `compare` returned, is at hand. `compiled=False` plays epochs step by step
    too: the same numbers, slower. `progress` is called now and then with the number of rounds played since the last
    call.
    """
    rounds = whole("rounds", rounds, least=1)
    if isinstance(learner, type) or not isinstance(learner, Learner):
        raise InputError(f"learner must be a learner such as CARMAB(), got {learner!r:.80}")
    world, player = copy.copy(environment), copy.deepcopy(learner)
    world_rng, learner_rng = generators(seed, replication)
    world.reset(world_rng, rounds)
    player.start(world.task(player.knows, rounds), learner_rng)
    trace = Trace.empty(rounds)
    _play(world, player, trace, compiled=compiled, progress=progress)
    if comparator is None:
        comparator = compare(environment, rounds, seed, replication)
    details: dict[str, str | int | float | bool] = {"informed": player.knows == "rewards"}
    if hasattr(player, "epochs"):
        details["epochs"] = player.epochs
    if isinstance(comparator, Comparator) and comparator.noise_aware_value is not None:
        details["noise_aware_value"] = comparator.noise_aware_value
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
        comparator_rewards=comparator.rewards if isinstance(comparator, Comparator) else None,
    )


class Comparator(NamedTuple):
    """What the best policy under the true rewards earns a round, a bound on any, and its rewards round by round.

    `rewards` is None where the best policy does not depend on contexts. `noise_aware_value` is what could be earned,
    noise included, by someone who knows the noise of every edge and round in advance: out of any learner's reach.
    """

    value: float
    bound: float
    rewards: NDArray[np.float64] | None = None
    noise_aware_value: float | None = None


def compare(
    environment: RoundEnvironment, rounds: int, seed: int = 0, replication: int = 0, *, noise_aware: bool = False
) -> Comparator:
    """Return the comparator of a run with this seed.

    With known contexts it is the dynamic programme with the true theta over all rounds, without the noise. With
    stochastic ones it is the best stationary policy, playing the contexts of the run; no policy whatever could earn
    more on them than the bound, which is the dynamic programme's value. Where the joint histories are too many, it is
    the policy planned edge by edge, and the bound the one its prices prove for the contexts of the run.
    """
    rounds = whole("rounds", rounds, least=1)
    if not isinstance(environment, ContextualEnvironment):
        if noise_aware:
            raise InputError("the noise-aware optimum is there for rounds with contexts only")
        best = plan(environment.actions, environment.rewards, environment.window)
        return Comparator(best.value, best.bound)
    world, oracle = copy.copy(environment), Oracle()
    world.reset(generators(seed, replication)[0], rounds)
    oracle.start(world.task("rewards", rounds), generators(seed, replication)[1])
    trace = Trace.empty(rounds)
    _play(world, oracle, trace, compiled=True, progress=None)
    value = bound = float(trace.expected_rewards.mean())
    bases, size = world.bases_of_rounds(generators(seed, replication)[0]), world.contexts.block
    if not (world.contexts.known and fits(world.actions.n_listed, world.window)):
        bound = oracle.bound(bases, rounds) / rounds
    aware = None
    if noise_aware:
        by_edge = world.noise_of_rounds(generators(seed, replication)[0], rounds)
        planner = ContextualPlanner(world.actions, world.window, world.multipliers)
        bonus = (world.actions.incidence @ by_edge.T).T
        aware = planner.best(bases, 0, rounds, lambda first, last: bonus[first:last], reads=size) / rounds
    return Comparator(value, bound, trace.expected_rewards, aware)


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
    policy, tally = epoch
    if isinstance(policy, ContextualPolicy):
        if not (isinstance(world, ContextualEnvironment) and isinstance(tally, Fit)):
            raise InputError("a contextual policy is played in a ContextualEnvironment, into a Fit")
        return world.play_contextual(policy, tally, trace)
    if not isinstance(tally, Tally):
        raise InputError("a policy that looks at no context is played into a Tally")
    if isinstance(policy, TablePolicy):
        return world.play(policy.table, tally, trace)
    phase = policy.place(world.observe().history)
    if phase is None:
        return 0  # still on the way to the cycle
    return world.follow(policy.cycle[phase:] + policy.cycle[:phase], tally, trace)


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
    replications = whole("replications", replications, least=1)
    workers = whole("workers", workers, least=1)
    comparator = None
    if isinstance(environment, RoundEnvironment) and not isinstance(environment, ContextualEnvironment):
        comparator = compare(environment, rounds, seed)
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
    comparator: Comparator | None,
    replication: int,
) -> Run:
    if not isinstance(environment, RoundEnvironment):
        environment = instance(environment, seed, replication)
    return run(environment, learner, rounds, seed, replication=replication, comparator=comparator)


def instance(make: EnvironmentMaker, seed: int, replication: int) -> RoundEnvironment:
    """Return the environment that `make` draws for one replication."""
    (instance_seed,) = _seeds(seed, replication, "instance").spawn(1)
    return make(np.random.default_rng(instance_seed))


def generators(seed: int, replication: int) -> list[np.random.Generator]:
    """Return fresh generators of the world and of the learner, which spawn the same children each time."""
    return [np.random.default_rng(one) for one in _seeds(seed, replication).spawn(2)]


def _seeds(seed: int, replication: int, stream: str = "run") -> np.random.SeedSequence:
    """Return the root of all chance in one replication; the instance has a stream of its own."""
    entropy = whole("seed", seed, least=0)
    return np.random.SeedSequence(entropy, spawn_key=(replication, ("run", "instance").index(stream)))
