"""The Gymnasium environments: its own checker, agents, and the same numbers as the library gives without it."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from town import town

import routesim as rs


def arms(window: int = 3) -> rs.RoundEnvironment:
    base = [0.9, 0.7, 0.5, 0.3]
    return rs.RoundEnvironment.from_congestion(rs.ActionSet.arms(4), base, rs.congestion.Inverse(), window, 0.1)


def two_pairs() -> rs.RoundEnvironment:
    sets = [rs.ActionSet([(0, 2), (1, 2)]), rs.ActionSet([(3, 2), (4, 2), (5, 2)])]
    actions = rs.ActionSet.several(sets, [1.0, 2.0])
    return rs.RoundEnvironment.from_congestion(actions, -np.arange(1.0, 7.0), rs.congestion.Linear(slope=0.5), 2, 0.1)


def contextual(known: bool) -> rs.ContextualEnvironment:
    theta = np.full(3, 0.5)
    contexts: Any = rs.DrawnContexts(rs.UniformContexts(4, 3), 7) if known else rs.UniformContexts(4, 3)
    return rs.ContextualEnvironment(rs.ActionSet.arms(4), theta, contexts, rs.congestion.Inverse(), 2, 0.1, known=known)


def gaussian() -> rs.ContextualEnvironment:
    contexts = rs.GaussianContexts(np.full((4, 3), 2.0), 0.1 * np.eye(3))
    return rs.ContextualEnvironment(
        rs.ActionSet.arms(4), np.ones(3), contexts, rs.congestion.Inverse(), 2, 0.1, known=False, lengths="keep"
    )


def traffic(vehicles: float = 1200.0, **options: Any) -> rs.TrafficSimulator:
    roads = [("s", "a", 20.0), ("a", "t", 20.0), ("s", "b", 25.0), ("b", "t", 25.0), ("a", "b", 5.0), ("s", "t", 70.0)]
    network = town(roads, capacity_vph=300.0)
    table = {"origin": ["s", "a"], "destination": ["t", "t"], "vehicles": [vehicles, vehicles / 4]}
    demand = rs.Demand.from_od(table, 0.0, 3600.0)
    return rs.TrafficSimulator(network, demand, window_s=300.0, noise=0.1, **options)


ROUNDS = {
    "arms": lambda: rs.RoundsEnv(arms(), rounds=50),
    "no window": lambda: rs.RoundsEnv(arms(window=0), rounds=50),
    "two pairs": lambda: rs.RoundsEnv(two_pairs(), rounds=50),
    "known contexts": lambda: rs.RoundsEnv(contextual(known=True), rounds=50),
    "drawn contexts": lambda: rs.RoundsEnv(contextual(known=False), rounds=50),
    "long contexts": lambda: rs.RoundsEnv(gaussian(), rounds=50),
}
TRAFFIC = {
    "traffic": lambda: rs.TrafficEnv(traffic(), k=3),
    "stopped traffic": lambda: rs.TrafficEnv(traffic(), k=3, until_s=1800.0),
}


@pytest.mark.parametrize("make", [*ROUNDS.values(), *TRAFFIC.values()], ids=[*ROUNDS, *TRAFFIC])
def test_gymnasium_finds_no_fault(make: Any) -> None:
    check_env(make())  # warnings are errors here


def rewards_of(env: Any, choose: Any, steps: int, seed: int = 5) -> list[float]:
    """What an agent is paid over some steps, with a new episode whenever one ends; everything seen is in its space."""
    seen, _ = env.reset(seed=seed)
    paid = []
    for _ in range(steps):
        seen, reward, terminated, truncated, _ = env.step(choose(seen))
        assert seen in env.observation_space
        paid.append(reward)
        if terminated or truncated:
            seen, _ = env.reset()
    return paid


@pytest.mark.parametrize("make", [*ROUNDS.values(), *TRAFFIC.values()], ids=[*ROUNDS, *TRAFFIC])
def test_a_random_agent_takes_a_thousand_steps_and_repeats_exactly(make: Any) -> None:
    def play() -> list[float]:
        env = make()
        env.action_space.seed(1)
        return rewards_of(env, lambda _: env.action_space.sample(), 1000)

    assert play() == play()


def test_a_greedy_agent_beats_chance_in_rounds() -> None:
    env = rs.RoundsEnv(arms(), rounds=250)
    base, multiplier = np.array([0.9, 0.7, 0.5, 0.3]), rs.congestion.Inverse()
    greedy = rewards_of(env, lambda seen: int(np.argmax(base * multiplier(seen["counts"]))), 1000)
    env.action_space.seed(1)
    chance = rewards_of(env, lambda _: env.action_space.sample(), 1000)
    assert np.mean(greedy) > np.mean(chance) + 0.05


def test_a_greedy_agent_beats_chance_in_traffic() -> None:
    def greedy(seen: Any) -> int:
        return int(np.argmin(np.where(seen["paths"] == 1, seen["now_s"], np.inf)))

    env = rs.TrafficEnv(traffic(), k=3)
    by_time = rewards_of(env, greedy, 1000)
    env.action_space.seed(1)
    chance = rewards_of(env, lambda _: env.action_space.sample(), 1000)
    assert sum(by_time) > 0.9 * sum(chance)


@pytest.mark.parametrize("world", [arms(), contextual(True), contextual(False)], ids=["arms", "known", "drawn"])
def test_the_same_actions_are_paid_as_in_run(world: rs.RoundEnvironment) -> None:
    run = rs.run(world, rs.RandomPath(), 40, seed=3)
    env = rs.RoundsEnv(world, rounds=40)
    env.reset(seed=3)
    steps = [env.step(np.int64(action)) for action in run.actions]
    assert [step[1] for step in steps] == run.rewards.tolist()
    assert [step[4]["expected_reward"] for step in steps] == run.expected_rewards.tolist()
    assert [step[3] for step in steps] == [False] * 39 + [True]
    with pytest.raises(rs.RoutesimError, match="call reset"):
        env.step(np.int64(0))


def test_what_is_seen_is_the_window() -> None:
    env = rs.RoundsEnv(arms(window=3), rounds=10)
    seen, info = env.reset(seed=0)
    assert seen["last"].tolist() == [-1, -1, -1]
    assert info == {}
    for action in (2, 2, 1, 0):
        seen, reward, _, _, info = env.step(np.int64(action))
    assert seen["last"].tolist() == [2, 1, 0]
    assert seen["counts"].tolist() == [1, 1, 1, 0]
    assert info["edges"].tolist() == [0]
    assert info["counts"].tolist() == [0]
    assert info["edge_rewards"].sum() == reward


def test_an_action_is_a_path_of_the_pair_and_numbers_start_again() -> None:
    env = rs.RoundsEnv(two_pairs(), rounds=60)
    seen, _ = env.reset(seed=1)
    served = set()
    for _ in range(60):
        pair = int(seen["pair"])
        served.add(pair)
        seen, *_ = env.step(np.int64(2))
        assert seen["last"][-1] == (0 if pair == 0 else 4)
    assert served == {0, 1}


def test_a_whole_graph_has_no_numbered_paths() -> None:
    network = town([("s", "a", 1.0), ("a", "t", 1.0), ("s", "t", 3.0)])
    actions = rs.ActionSet.on_graph(network, "s", "t")
    world = rs.RoundEnvironment.from_congestion(actions, -network.free_flow_s, rs.congestion.Linear(slope=1.0), 1, 0.0)
    with pytest.raises(rs.RoutesimError, match=r"ActionSet\.between"):
        rs.RoundsEnv(world)


@pytest.mark.parametrize("until_s", [None, 1500.0])
def test_the_rewards_of_traffic_add_up_to_the_time_of_all_trips(until_s: float | None) -> None:
    simulator = traffic(overtaking=False)
    env = rs.TrafficEnv(simulator, k=3, until_s=until_s)
    rng = np.random.default_rng(0)
    seen, info = env.reset(seed=11)
    total, ended, paths, over = 0.0, 0, 0, False
    while not over:
        assert info["vehicle"] == paths
        seen, reward, terminated, truncated, info = env.step(rng.integers(3))
        total, ended, paths, over = total + reward, ended + info["ended"], paths + 1, terminated or truncated
    assert (terminated, truncated) == (until_s is None, until_s is not None)
    assert not any(np.any(part) for part in seen.values())
    assert env.traffic is not None
    assert -total == pytest.approx(env.traffic.total_travel_time_s, rel=1e-12)
    assert ended == env.traffic.arrived.sum()
    # The same routes, handed to the simulator at once, give the same traffic.
    routes = [env.traffic.path(vehicle).tolist() for vehicle in range(paths)]
    if until_s is None:
        again = simulator.run(routes, seed=11)
        assert again.arrival_s.tolist() == env.traffic.arrival_s.tolist()


def test_present_times_are_those_of_the_counts() -> None:
    env = rs.TrafficEnv(traffic(), k=3)
    seen, _ = env.reset(seed=2)
    assert seen["now_s"].tolist() == seen["free_flow_s"].tolist()
    for _ in range(100):
        seen, *_ = env.step(np.int64(0))
    assert (seen["entries"] > 0).any()
    assert (seen["now_s"] >= seen["free_flow_s"]).all()
    assert (seen["now_s"] > seen["free_flow_s"]).any()


def test_mistakes_are_said() -> None:
    with pytest.raises(rs.RoutesimError, match="rounds must be at least 1"):
        rs.RoundsEnv(arms(), rounds=0)
    with pytest.raises(rs.RoutesimError, match="k must be at least 1"):
        rs.TrafficEnv(traffic(), k=0)
    with pytest.raises(rs.RoutesimError, match="until_s must be above 0"):
        rs.TrafficEnv(traffic(), until_s=0.0)
    with pytest.raises(rs.RoutesimError, match="call reset"):
        rs.TrafficEnv(traffic()).step(np.int64(0))


def test_gymnasium_is_imported_on_use_only() -> None:
    code = "import routesim as rs, sys; rs.ActionSet; print('gymnasium' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_without_gymnasium_the_message_says_what_to_install() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import routesim as rs; rs.RoundsEnv"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 1
    assert "pip install 'routesim[gym]'" in out.stderr
