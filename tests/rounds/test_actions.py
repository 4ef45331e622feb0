"""Action sets: arms are paths of one edge, and nothing invalid can be built."""

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from worlds import grid

import routesim as rs
from routesim.errors import InputError
from routesim.rounds.actions import PathList, SeveralPairs, WholeGraph
from routesim.storage.checkpoint import fingerprint


def test_an_arm_is_a_path_of_one_edge() -> None:
    arms = rs.ActionSet.arms(3)
    assert arms.paths == ((0,), (1,), (2,))
    assert arms.incidence.toarray().tolist() == np.eye(3).tolist()
    assert (arms.n_actions, arms.n_edges, arms.longest) == (3, 3, 1)


def test_columns_are_the_used_edges_in_ascending_order() -> None:
    actions = rs.ActionSet([(9, 4), (4, 7, 2)])
    assert actions.edges.tolist() == [2, 4, 7, 9]
    assert actions.incidence.toarray().astype(int).tolist() == [[0, 1, 0, 1], [1, 1, 1, 0]]
    assert actions.positions(0).tolist() == [3, 1], "in the order of the path"
    assert actions.longest == 3


@pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "sparse"])
def test_rows_of_an_incidence_become_actions(form: type) -> None:
    actions = rs.ActionSet.from_incidence(form([[1, 0, 1], [0, 1, 1]]))
    assert actions.paths == ((0, 2), (1, 2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rs.ActionSet.arms(0), "number of arms must be at least 1, got 0"),
        (lambda: rs.ActionSet.arms(2.5), "whole number, got 2.5"),
        (lambda: rs.ActionSet.arms("4"), "whole number, got '4'"),
        (lambda: rs.ActionSet([1, 2]), "action 0 must be a sequence of edge indices, got 1"),
        (lambda: rs.ActionSet([(0.7, 1.2)]), "sequence of edge indices"),
        (lambda: rs.ActionSet.from_incidence([[1, 0], [1]]), "must be numbers"),
        (lambda: rs.ActionSet([]), "at least one action"),
        (lambda: rs.ActionSet([(0,), ()]), "action 1 is empty"),
        (lambda: rs.ActionSet([(0, 1, 0)]), "uses edge 0 twice"),
        (lambda: rs.ActionSet([(0, -1)]), "edge -1"),
        (lambda: rs.ActionSet.from_incidence([[1, 0], [0, 0]]), "action 1 is empty"),
        (lambda: rs.ActionSet.from_incidence([[2, 0]]), "only 0 and 1"),
        (lambda: rs.ActionSet.from_incidence([1, 0]), "1 dimension"),
        (lambda: rs.ActionSet.from_incidence([[1, 0], [1, 0]]), "edge column 1 is used by no action"),
    ],
)
def test_what_cannot_be_an_action_set_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_the_three_types_keep_one_contract() -> None:
    town = grid()
    one, other = ((0, 0), (2, 2)), ((2, 0), (0, 2))
    listed, whole = rs.ActionSet.between(town, *one, k=2), rs.ActionSet.on_graph(town, *one)
    lists = rs.ActionSet.several([listed, rs.ActionSet.between(town, *other, k=2)], rates=[3, 1])
    graphs = rs.ActionSet.several([whole, rs.ActionSet.on_graph(town, *other)], rates=[3, 1])
    assert [type(actions) for actions in (listed, whole, lists, graphs)] == [
        PathList,
        WholeGraph,
        SeveralPairs,
        SeveralPairs,
    ]
    for actions in (listed, whole, lists, graphs):
        assert isinstance(actions, rs.ActionSet)
        assert actions.n_pairs == len(actions.rates)
        assert actions.rates.sum() == pytest.approx(1)
        assert actions.without_network().network is None
        assert actions.network is town
        for twin in (copy.copy(actions), copy.deepcopy(actions), pickle.loads(pickle.dumps(actions))):  # noqa: S301
            assert type(twin) is type(actions)
            assert fingerprint(twin) == fingerprint(actions) == fingerprint(actions.without_network())
            assert twin.best(-np.ones(twin.n_edges), actions.n_pairs - 1) == actions.best(
                -np.ones(actions.n_edges), actions.n_pairs - 1
            )
    assert len({fingerprint(actions) for actions in (listed, whole, lists, graphs)}) == 4


def test_several_sets_of_one_pair_are_that_set() -> None:
    arms = rs.ActionSet.arms(3)
    assert rs.ActionSet.several([arms], rates=[7]) is arms


@pytest.mark.parametrize("asked", ["listed_paths", "n_listed", "indptr", "indices", "incidence", "first_action"])
def test_a_whole_graph_says_that_it_is_no_list(asked: str) -> None:
    whole = rs.ActionSet.on_graph(grid(), (0, 0), (2, 2))
    for actions in (whole, rs.ActionSet.several([whole, whole], rates=[1, 1])):
        with pytest.raises(InputError, match="needs a list of paths"):
            getattr(actions, asked)
