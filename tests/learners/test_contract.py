"""What every learner of the registry keeps: it is what its class says, in rounds and in traffic."""

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from worlds import WORLDS, arms, contexts, graph, pairs, players

import routesim as rs
from routesim import registry
from routesim.errors import InputError, ScenarioError
from routesim.learners.base import CompiledLearner, Traits
from routesim.scenario.choices import LearnerChoice, RouterChoice
from routesim.scenario.files import parse_scenario
from routesim.traffic.routers import as_router, in_traffic
from routesim.traffic.routers.base import RouterTraits

KINDS = registry.learners()
PLAIN = {name: kind for name, kind in KINDS.items() if not Traits.of(kind).needs_contexts}
every_learner = pytest.mark.parametrize("name", KINDS)


@every_learner
def test_a_learner_plays_with_contexts_and_without_them_unless_it_needs_them(name: str) -> None:
    learner = KINDS[name]()
    assert isinstance(learner, rs.Learner)
    for world in (contexts(known=True), contexts(known=False)):
        run, again = (rs.run(world, learner, 200, seed=5) for _ in range(2))
        assert run.actions.tolist() == again.actions.tolist(), "the same seed gives the same run"
    if Traits.of(learner).needs_contexts:
        with pytest.raises(InputError, match="needs rounds with contexts"):
            rs.run(arms(), learner, 10)
    else:
        assert rs.run(arms(), learner, 10).rounds == 10


COMPILED = [
    (world, learner)
    for world in ("arms", "no window", "paths", "known contexts", "stochastic contexts")
    for learner in [*players(needs_contexts=False), *(players(needs_contexts=True) if "contexts" in world else ())]
    if isinstance(learner, CompiledLearner)
] + [(world, rs.LinUCB(blind=True)) for world in ("known contexts", "stochastic contexts")]


@pytest.mark.parametrize(("world", "learner"), COMPILED, ids=lambda part: part if isinstance(part, str) else repr(part))
def test_rounds_played_in_one_call_give_the_numbers_of_single_steps(world: str, learner: rs.Learner) -> None:
    fast, plain = (rs.run(WORLDS[world](), learner, 300, seed=3, compiled=flag) for flag in (True, False))
    assert fast.actions.tolist() == plain.actions.tolist()
    assert fast.expected_rewards.tolist() == plain.expected_rewards.tolist()
    assert fast.rewards.tolist() == plain.rewards.tolist()
    assert len(set(fast.actions.tolist())) > 1


def test_the_learners_without_a_plan_are_compiled() -> None:
    names = {type(learner).__name__ for _, learner in COMPILED}
    assert names >= {"UCB1", "ThompsonSampling", "EpsilonGreedy", "RandomPath", "LinUCB", "LinearGreedy"}


def test_a_subclass_that_chooses_otherwise_is_played_step_by_step() -> None:
    class Stubborn(rs.UCB1):
        def choose(self, observation: rs.Observation) -> int:  # noqa: ARG002 - whatever it sees
            return 2

    assert set(rs.run(arms(), Stubborn(), 50).actions.tolist()) == {2}


@pytest.mark.parametrize("name", PLAIN)
def test_a_learner_plays_every_path_of_a_graph_if_its_class_says_so(name: str) -> None:
    if Traits.of(KINDS[name]).plays_whole_graph:
        assert rs.run(graph(), KINDS[name](), 20).rounds == 20
    else:
        with pytest.raises(InputError, match="a list of"):
            rs.run(graph(), KINDS[name](), 20)


@pytest.mark.parametrize("name", [name for name, kind in PLAIN.items() if Traits.of(kind).plays_several_pairs])
def test_a_learner_plays_several_pairs_if_its_class_says_so(name: str) -> None:
    assert rs.run(pairs(whole=False), KINDS[name](), 200).rounds == 200


@pytest.mark.parametrize("learner", players(needs_contexts=False), ids=repr)
def test_what_a_learner_does_depends_on_feedback_if_its_class_says_so(learner: rs.Learner) -> None:
    quiet, noisy = (
        rs.RoundEnvironment.from_congestion(
            rs.ActionSet.arms(4), [0.6, 0.5, 0.4, 0.3], rs.congestion.Inverse(), 2, noise_std
        )
        for noise_std in (0.0, 0.5)
    )
    one, other = (rs.run(world, learner, 1_000, seed=3).actions.tolist() for world in (quiet, noisy))
    assert (one != other) == Traits.of(learner).learns


def test_a_learner_that_says_only_what_it_knows_has_the_defaults() -> None:
    class Bare:
        knows = "free_flow"

    assert Traits.of(Bare()) == Traits.of(Bare) == Traits(knows="free_flow")
    assert not Traits.of(Bare()).informed
    assert Traits(knows="rewards").informed


def other_values(kind: Any, field: Any) -> list[Any]:
    """Values of a setting that differ from its default."""
    hint = get_type_hints(kind)[field.name]
    if get_origin(hint) is Literal:
        return [value for value in get_args(hint) if value != field.default]
    if hint is bool:
        return [not field.default]
    if hint == float | None:
        return [0.25]
    assert hint in (int, float), f"say here what else {kind.__name__}.{field.name} can be"
    return [field.default + 3 if hint is int else 2 * field.default if field.default > 1 else field.default / 2 + 0.25]


SETTINGS = [
    (name, field.name, value)
    for name, kind in KINDS.items()
    for field in dataclasses.fields(kind)
    if field.init
    for value in other_values(kind, field)
]


@pytest.mark.parametrize(("name", "setting", "value"), SETTINGS)
def test_a_setting_is_kept_in_traffic_or_refused_by_name(name: str, setting: str, value: Any) -> None:
    learner = KINDS[name](**{setting: value})
    if not in_traffic(KINDS[name]):
        with pytest.raises(InputError, match=f"{name} needs the .* and has no counterpart in traffic; use .*Router"):
            as_router(learner)
        return
    own = [kind for kind in registry.routers().values() if RouterTraits.of(kind).stands_for is KINDS[name]]
    if own and setting not in {one.name for one in dataclasses.fields(own[0])}:
        refusal = f"{name}'s {setting} = {value!r} has no meaning in traffic.*leave {setting} out"
        with pytest.raises(InputError, match=refusal):
            as_router(learner)
        return
    router: Any = as_router(learner)
    assert [type(router)] == (own or [rs.PairLearnersRouter])
    assert getattr(router if own else router.learner, setting) == value


@every_learner
def test_the_defaults_of_a_learner_always_have_a_counterpart_or_none_has(name: str) -> None:
    if in_traffic(KINDS[name]):
        assert isinstance(as_router(KINDS[name]()), rs.Router)
    assert (name in RouterChoice.known) == in_traffic(KINDS[name])
    assert name in LearnerChoice.known


def test_the_counterparts_in_traffic() -> None:
    assert as_router(rs.CARMAB(confidence=3, delta=0.2)) == rs.CARMABRouter(confidence=3, delta=0.2)
    assert as_router(rs.CARMAB()) == rs.CARMABRouter()
    assert as_router(rs.CARCB(ridge=5)) == rs.CARCBRouter(ridge=5)
    assert as_router(rs.ShortestPath()) == rs.FreeFlowRouter()
    assert as_router(rs.GreedyCongestion()) == rs.GreedyRouter()
    assert as_router(rs.EpsilonGreedy(0.3)) == rs.PairLearnersRouter(rs.EpsilonGreedy(0.3))
    for learner, said in {
        rs.CARMAB: {"planner": "exact", "monotone": False},
        rs.CARCB: {"planner": "edgewise", "skip_first": True, "sample": 7},
    }.items():
        for setting, value in said.items():
            with pytest.raises(InputError, match=f"{setting} = {value!r} has no meaning in traffic"):
                as_router(learner(**{setting: value}))


def test_a_learner_of_ones_own_keeps_its_place_in_traffic() -> None:
    class Myopic:
        """Only what the contract asks for."""

        knows = "free_flow"

        def start(self, task: rs.Task, rng: np.random.Generator) -> None:  # noqa: ARG002 - no chance involved
            assert task.free_flow_rewards is not None
            self.best = int(np.argmax(task.actions.incidence @ task.free_flow_rewards))

        def choose(self, observation: rs.Observation) -> int:  # noqa: ARG002 - whatever it sees
            return self.best

        def update(self, feedback: rs.Feedback) -> None:
            pass

    roads = rs.load_city("nauru")
    ends = [roads.labels[0], roads.labels[roads.n_nodes // 2]]
    trips = rs.Demand.from_od({"origin": ends[:1], "destination": ends[1:], "vehicles": [20.0]})
    traffic = rs.TrafficSimulator(roads, trips).run(Myopic())
    assert traffic.router == "PairLearnersRouter"
    assert traffic.path(0).tolist() == rs.TrafficSimulator(roads, trips).run(rs.ShortestPath()).path(0).tolist()


TRAFFIC = """
kind = "traffic"
title = "a setting"
replications = 1
seed = 0
[traffic]
edges = [{ from = "a", to = "b", free_flow_s = 10.0 }]
travellers = { classes = { a = 1.0 }, costs = { time = 1.0 } }
demand = { pairs = [{ from = "a", to = "b", vehicles = 10.0 }] }
[[learners]]
"""


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ('name = "CARCB"\nsample = 7', "learners.0: CARCB's sample = 7 has no meaning in traffic.*leave sample out"),
        ('name = "CARMAB"\nplanner = "karp"', "CARMAB's planner = 'karp' has no meaning in traffic"),
        (
            'name = "Oracle"',
            "Oracle needs the rewards of rounds and has no counterpart in traffic; .*PlannedRouter",
        ),
        ('name = "LinUCB"', "LinUCB needs the features of rounds and has no counterpart in traffic; use CARCBRouter"),
        ('name = "PairLearnersRouter"', "there is no 'PairLearnersRouter'"),
        ('name = "PlannedRouter"\nplan = 1', "PlannedRouter has no parameter 'plan'"),
    ],
)
def test_a_scenario_with_a_setting_that_traffic_cannot_honour_does_not_load(learner: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(TRAFFIC + learner)


def test_a_setting_that_traffic_honours_is_in_the_router() -> None:
    (choice,) = parse_scenario(TRAFFIC + 'name = "CARCB"\nridge = 5.0').learners
    assert choice.label == "CARCB(ridge=5.0)"
    assert choice.make() == rs.CARCBRouter(ridge=5.0)
