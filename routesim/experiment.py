"""Environment x learner x seed -> Run: the one loop, and replications of it on one or more processes."""

import copy
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routesim.checks import whole
from routesim.errors import InputError, RoutesimError
from routesim.learners.base import CompiledLearner, CountsEpochs, Epoch, EpochLearner, Learner, Traits
from routesim.learners.oracle import Oracle
from routesim.planning import plan
from routesim.planning.base import Plan
from routesim.planning.contextual.exact import ContextualPlanner
from routesim.planning.exact.planner import TablePolicy, fits
from routesim.planning.finite_horizon import best_average
from routesim.results.run import Run, run_of
from routesim.rounds.contextual import ContextualEnvironment
from routesim.rounds.contextual_policy import ContextualPolicy, Fit
from routesim.rounds.environment import RoundEnvironment, Tally
from routesim.rounds.kernels import Trace
from routesim.rounds.trace import TraceKeeper, row_sums
from routesim.storage.checkpoint import Checkpoint, fingerprint, postponed_interrupts
from routesim.storage.state import State, join, part, resumable, speaks_for

EnvironmentMaker: TypeAlias = Callable[[np.random.Generator], RoundEnvironment]
Progress: TypeAlias = Callable[[int], None]


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
    keep: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_s: float = 10.0,
) -> Run:
    """Let `learner` play `rounds` rounds and return what happened; neither argument changes.

    Every random choice follows from `seed` and the number of the `replication`. `comparator` saves planning with the
    true rewards again if that plan, or what `compare` returned, is at hand. `compiled=False` plays all rounds step by
    step: the same numbers, slower. `progress` is called now and then with the number of rounds played since the last
    call. `keep` keeps at most so many rows of equal numbers of rounds, in memory too, in place of a row for each round;
    see `Run.ends`.

    `checkpoint` names a file: if it is there, the run goes on from it, to the same numbers as if it had never stopped.
    It is written about every `checkpoint_s` seconds and on Ctrl-C, with a file ".rows" beside it, and deleted in the
    end. One run at a time uses it. A learner that tells no state (see `Resumable`) starts over.

    >>> import routesim as rs
    >>> two_roads = rs.RoundEnvironment.from_congestion(
    ...     rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), window=2, noise_std=0.1
    ... )
    >>> played = run(two_roads, rs.ShortestPath(), rounds=4, seed=0)
    >>> played.actions.tolist(), played.expected_rewards.tolist()
    ([0, 0, 0, 0], [0.9, 0.9, 0.45, 0.45])
    """
    rounds, keep = whole("rounds", rounds, least=1), _checked_keep(keep)
    if isinstance(learner, type) or not isinstance(learner, Learner):
        raise InputError(f"learner must be a learner such as CARMAB(), got {learner!r:.80}")
    world, player = copy.copy(environment), copy.deepcopy(learner)
    world_rng, learner_rng = generators(seed, replication)
    world.reset(world_rng, rounds)
    player.start(world.task(player.knows, rounds), learner_rng)
    game = _Game("learner", world, player, TraceKeeper.keeping(rounds, keep))
    saved = None
    if checkpoint is not None:
        identity = fingerprint(world, learner, rounds, seed, replication, game.keeper.size)
        saved = Checkpoint(checkpoint, identity, checkpoint_s)
    with _saving(saved):
        game.play(compiled, progress, saved)
        if comparator is None:
            comparator = _compare(environment, rounds, seed, replication, noise_aware=False, keep=keep, saved=saved)
    details: dict[str, str | int | float | bool] = {"informed": Traits.of(player).informed}
    if isinstance(player, CountsEpochs):
        details["epochs"] = player.epochs
    if isinstance(comparator, Comparator) and comparator.noise_aware_value is not None:
        details["noise_aware_value"] = comparator.noise_aware_value
    trace = game.keeper.kept()
    return run_of(
        trace,
        learner=type(learner).__name__,
        window=world.window,
        network=world.actions.network,
        comparator_value=comparator.value,
        comparator_bound=comparator.bound,
        seed=seed,
        replication=replication,
        paths=world.paths,
        details=details,
        comparator_rewards=_compared(comparator, trace.ends) if isinstance(comparator, Comparator) else None,
    )


def _checked_keep(keep: int | None) -> int | None:
    return None if keep is None else whole("keep", keep, least=1)


class Comparator(NamedTuple):
    """What the best policy under the true rewards earns a round, a bound on any, and its rewards round by round.

    `rewards` is None where the best policy does not depend on contexts. `noise_aware_value` is what could be earned,
    noise included, by someone who knows the noise of every edge and round in advance: out of any learner's reach.
    `ends` says after how many rounds each row of `rewards` ends, as in a Run; None: a row a round.
    """

    value: float
    bound: float
    rewards: NDArray[np.float64] | None = None
    noise_aware_value: float | None = None
    ends: NDArray[np.int64] | None = None


def _compared(comparator: Comparator, ends: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Return the comparator's rewards in the rows of a run that end after `ends`."""
    rewards = comparator.rewards
    if rewards is None:
        return None
    made = np.arange(1, len(rewards) + 1) if comparator.ends is None else comparator.ends
    if np.array_equal(made, ends):
        return rewards
    if len(made) == made[-1] == ends[-1]:
        thinned: NDArray[np.float64] = row_sums(rewards, int(ends[0])) / np.diff(ends, prepend=0)
        return thinned
    raise InputError("the comparator was made for other rounds than these; give compare the same rounds and keep")


def compare(
    environment: RoundEnvironment,
    rounds: int,
    seed: int = 0,
    replication: int = 0,
    *,
    noise_aware: bool = False,
    finite_horizon: bool = False,
    keep: int | None = None,
) -> Comparator:
    """Return the comparator of a run with this seed; `keep` is that of the run.

    With known contexts it is the dynamic programme with the true theta over all rounds, without the noise. With
    stochastic ones it is the best stationary policy, playing the contexts of the run; no policy whatever could earn
    more on them than the bound, which is the dynamic programme's value. Where the joint histories are too many, it is
    the policy planned edge by edge, and the bound the one its prices prove for the contexts of the run.

    Without contexts it is the best average that can be kept up for ever. With `finite_horizon` it is the best total
    over these rounds, from empty roads, divided by their number: the comparator of the paper. It is larger, since the
    first rounds find the roads empty and the last need not spare any that follow; over all rounds together the
    difference stays below what a window of rounds can change, however many there are.

    >>> import routesim as rs
    >>> turns = rs.RoundEnvironment(rs.ActionSet.arms(2), [[1.0, 0.0], [0.5, 0.25]], window=1, noise_std=0.0)
    >>> compare(turns, 3).value, compare(turns, 3, finite_horizon=True).value
    (0.75, 0.8333333333333334)
    """
    rounds, keep = whole("rounds", rounds, least=1), _checked_keep(keep)
    if finite_horizon:
        contexts = isinstance(environment, ContextualEnvironment)
        best = best_average(None if contexts else environment.actions, environment.rewards, environment.window, rounds)
        return Comparator(best, best)
    return _compare(environment, rounds, seed, replication, noise_aware=noise_aware, keep=keep)


def _compare(
    environment: RoundEnvironment,
    rounds: int,
    seed: int,
    replication: int,
    *,
    noise_aware: bool,
    keep: int | None,
    saved: Checkpoint | None = None,
) -> Comparator:
    if not isinstance(environment, ContextualEnvironment):
        if noise_aware:
            raise InputError("the noise-aware optimum is there for rounds with contexts only")
        best = plan(environment.actions, environment.rewards, environment.window)
        return Comparator(best.value, best.bound)
    world, oracle = copy.copy(environment), Oracle()
    world.reset(generators(seed, replication)[0], rounds)
    oracle.start(world.task("rewards", rounds), generators(seed, replication)[1])
    game = _Game("comparator", world, oracle, TraceKeeper.keeping(rounds, keep))
    game.play(compiled=True, progress=None, saved=saved)
    trace = game.keeper.kept()
    value = bound = float(np.average(trace.expected_rewards, weights=np.diff(trace.ends, prepend=0)))
    bases, size = world.bases_of_rounds(generators(seed, replication)[0]), world.contexts.block
    if not (world.contexts.known and fits(world.actions.n_listed, world.window)):
        bound = oracle.bound(bases, rounds) / rounds
    aware = None
    if noise_aware:
        by_edge = world.noise_of_rounds(generators(seed, replication)[0], rounds)
        planner = ContextualPlanner(world.actions, world.window, world.multipliers)
        bonus = (world.actions.incidence @ by_edge.T).T
        aware = planner.best(bases, 0, rounds, lambda first, last: bonus[first:last], reads=size) / rounds
    return Comparator(value, bound, trace.expected_rewards, aware, trace.ends)


@dataclass
class _Game:
    """A learner in a world, and what is kept of the rounds they play."""

    name: str
    world: RoundEnvironment
    player: Any
    keeper: TraceKeeper

    def play(self, compiled: bool, progress: Progress | None, saved: Checkpoint | None) -> None:
        """Play all rounds, or those that are left."""
        world, player, keeper = self.world, self.player, self.keeper
        by_epoch = player if compiled and isinstance(player, EpochLearner) else None
        by_itself = compiled and isinstance(player, CompiledLearner) and speaks_for(player, "play")
        by_itself = by_itself and world.actions.n_pairs == 1
        if saved and resumable(world) and resumable(player):
            self._go_on(saved)
        shown = keeper.now
        if progress and shown:
            self._show(progress, shown, saved)
        while keeper.now < keeper.rounds:
            epoch = by_epoch.epoch(keeper.now) if by_epoch else None
            stretch = 0
            if epoch is not None:
                room = keeper.room()
                stretch = _play_epoch(world, epoch, room.part(0, min(len(room.actions), epoch.end - keeper.now)))
            elif by_itself:
                stretch = world.play_by(player.play, keeper.room())
            if stretch == 0:
                action = player.choose(world.observe())
                number = world.number(action)
                feedback = world.step(action)
                player.update(feedback)
                keeper.put(number, world.expected_reward, feedback.reward)
            if keeper.advance(max(1, stretch)):
                keeper.put_uses(world.take_uses())
            if saved:
                saved.tick()
            if progress and (keeper.now - shown >= 1 << 12 or keeper.now == keeper.rounds):
                shown, new = keeper.now, keeper.now - shown
                self._show(progress, new, saved)

    def _go_on(self, saved: Checkpoint) -> None:
        stored = saved.begin(self.name, self)
        if stored is None:
            return
        state, rows = stored
        try:
            self.world.restore(part(state, "world"))
            self.player.restore(part(state, "player"))
            self.keeper.restore(part(state, "trace"), rows)
        except (RoutesimError, ValueError, TypeError, KeyError, IndexError, OverflowError) as problem:
            saved.refuse(problem)

    def _show(self, progress: Progress, new: int, saved: Checkpoint | None) -> None:
        try:
            progress(new)
        except KeyboardInterrupt:
            if saved:
                saved.write()
            raise

    def state(self) -> State:
        """Return all that the coming rounds depend on."""
        return join(world=self.world.state(), player=self.player.state(), trace=self.keeper.state())

    def rows(self, first: int) -> NDArray[Any]:
        """Return the complete rows of the trace."""
        return self.keeper.rows(first)


@contextmanager
def _saving(saved: Checkpoint | None) -> Iterator[None]:
    """Let interrupts wait while there is a checkpoint to write, which is removed in the end."""
    if saved is None:
        yield
        return
    try:
        with postponed_interrupts() as saved.interrupted:
            yield
            if saved.interrupted():
                saved.tick()
    except BaseException:
        saved.leave()
        raise
    saved.remove()


def _play_epoch(world: RoundEnvironment, epoch: Epoch, trace: Trace) -> int:
    """Play an epoch in one compiled call and return its rounds; 0 if the next round must be a single step."""
    policy, tally, _ = epoch
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
    keep: int | None = None,
) -> list[Run]:
    """Return `replications` independent runs, the same ones whatever the number of `workers`.

    A function of a generator in place of the environment draws a new one for each replication. With more than
    one worker a script must start its work under `if __name__ == "__main__":`, as for every use of processes,
    and the function must be importable. `progress` is called with the rounds of each finished run; `keep` is as for
    `run`.

    >>> import routesim as rs
    >>> two_roads = rs.RoundEnvironment.from_congestion(
    ...     rs.ActionSet.arms(2), [0.9, 0.6], rs.congestion.Inverse(), window=2, noise_std=0.1
    ... )
    >>> runs = replicate(two_roads, rs.UCB1(), rounds=500, seed=0, replications=3)
    >>> [one.replication for one in runs]
    [0, 1, 2]
    """
    replications = whole("replications", replications, least=1)
    workers = whole("workers", workers, least=1)
    comparator, network = None, None
    if isinstance(environment, RoundEnvironment):
        if not isinstance(environment, ContextualEnvironment):
            comparator = compare(environment, rounds, seed)
        # The roads stay here: nothing is decided by them, and each run would come back with a copy.
        network, environment = environment.actions.network, copy.copy(environment)
        environment.actions = environment.actions.without_network()
    one = partial(_replication, environment, learner, rounds, seed, comparator, _checked_keep(keep))
    runs = []
    for finished in _each(one, replications, workers):
        runs.append(finished if network is None else replace(finished, network=network))
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
    keep: int | None,
    replication: int,
) -> Run:
    if not isinstance(environment, RoundEnvironment):
        environment = instance(environment, seed, replication)
    return run(environment, learner, rounds, seed, replication=replication, comparator=comparator, keep=keep)


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
