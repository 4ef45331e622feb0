"""One small world of every kind, and the learners that can play in it."""

from collections.abc import Callable

import networkx as nx
import numpy as np

import routesim as rs
from routesim import registry
from routesim.learners.base import Traits
from routesim.travellers.contexts import unit_vectors

ROUNDS = 400


def grid(side: int = 3) -> rs.RoadNetwork:
    graph = nx.grid_2d_graph(side, side, create_using=nx.DiGraph)
    rng = np.random.default_rng(1)
    for _, _, attributes in graph.edges(data=True):
        attributes["free_flow_s"] = float(rng.uniform(10, 20))
    return rs.RoadNetwork.from_networkx(graph)


def roads(actions: rs.ActionSet, window: int) -> rs.RoundEnvironment:
    base = -grid().free_flow_s[actions.edges]
    return rs.RoundEnvironment.from_congestion(actions, base, rs.congestion.Linear(0.5), window, -0.1 * base)


def arms(window: int = 3) -> rs.RoundEnvironment:
    return rs.RoundEnvironment.from_congestion(
        rs.ActionSet.arms(3), [0.9, 0.6, 0.5], rs.congestion.Inverse(), window, 0.3
    )


def paths(window: int) -> rs.RoundEnvironment:
    return roads(rs.ActionSet.between(grid(), (0, 0), (2, 2), method="all"), window)


def graph() -> rs.RoundEnvironment:
    return roads(rs.ActionSet.on_graph(grid(), (0, 0), (2, 2)), 3)


def pairs(*, whole: bool, window: int = 3) -> rs.RoundEnvironment:
    make = rs.ActionSet.on_graph if whole else lambda *ends: rs.ActionSet.between(*ends, method="all")
    ends = [((0, 0), (2, 2)), ((0, 2), (2, 1))]
    return roads(rs.ActionSet.several([make(grid(), *two) for two in ends], rates=[2, 1]), window)


def contexts(*, known: bool, window: int = 2, n_paths: int = 3) -> rs.ContextualEnvironment:
    """Paths with travel times that depend on features; known contexts come block by block from a function."""
    actions = rs.ActionSet([(0, 1), (1, 2, 3), (4,), (5, 6), (7,), (2, 8), (9,)][:n_paths])
    sampler = rs.UniformContexts(actions.n_edges, 3)
    theta = -100 * unit_vectors(np.random.default_rng(4), (3,))
    source = rs.DrawnContexts(sampler, seed=2) if known else sampler
    return rs.ContextualEnvironment(actions, theta, source, rs.congestion.Linear(0.5), window, 5.0, known=known)


WORLDS: dict[str, Callable[[], rs.RoundEnvironment]] = {
    "arms": arms,
    "no window": lambda: arms(0),
    "paths": lambda: paths(3),
    "long window": lambda: paths(17),
    "graph": graph,
    "pairs": lambda: pairs(whole=False),
    "pairs, long window": lambda: pairs(whole=False, window=17),
    "pairs on a graph": lambda: pairs(whole=True),
    "known contexts": lambda: contexts(known=True),
    "stochastic contexts": lambda: contexts(known=False),
    "known contexts, many paths": lambda: contexts(known=True, window=9, n_paths=7),
    "stochastic contexts, many paths": lambda: contexts(known=False, window=9, n_paths=7),
}


def players(**says: bool) -> list[rs.Learner]:
    """One of each learner of the registry whose class says this of itself."""
    chosen = [kind for kind in registry.learners().values() if says.items() <= Traits.of(kind)._asdict().items()]
    return [rs.CARMAB(confidence=1) if kind is rs.CARMAB else kind() for kind in chosen]


PLAIN, LINEAR = players(needs_contexts=False), players(needs_contexts=True)
# Posterior sampling plans anew in many more epochs, each of which takes long here, and keeps its state as CARMAB does.
LONG_SIGHTED = [one for one in players(plays_whole_graph=True) if not isinstance(one, rs.PosteriorSampling)]
ON_GRAPH = [*players(plays_whole_graph=True), rs.CARMAB(confidence=1, monotone=True)]
LEARNERS: dict[str, list[rs.Learner]] = {
    "arms": [*PLAIN, rs.CARMAB(confidence=1, planner="karp"), rs.CARMAB(confidence=1, planner="edgewise")],
    "no window": [rs.CARMAB(confidence=1), rs.UCB1(), rs.Oracle(), rs.CARMAB(planner="edgewise")],
    "paths": [*PLAIN, rs.CARMAB(confidence=1, planner="edgewise")],
    "long window": LONG_SIGHTED,
    "graph": ON_GRAPH,
    "pairs": players(plays_several_pairs=True),
    "pairs, long window": [one for one in LONG_SIGHTED if Traits.of(one).plays_several_pairs],
    "pairs on a graph": ON_GRAPH,
    "known contexts": [*PLAIN, *LINEAR, rs.CARCB(skip_first=True), rs.CARCB("edgewise", ridge=0.1)],
    "stochastic contexts": [*PLAIN, *LINEAR, rs.CARCB("edgewise", ridge=0.1)],
    "known contexts, many paths": [rs.CARCB(), rs.Oracle()],
    "stochastic contexts, many paths": [rs.CARCB(), rs.Oracle()],
}
CASES = [(world, learner) for world, learners in LEARNERS.items() for learner in learners]
