"""The window counter, beside counting the last actions anew each round."""

import numpy as np
import pytest

from routesim.rounds.window import PathRows, WindowState, enter, leave, move

PATHS = [[0, 2], [1], [0, 1, 3]]
INDPTR = np.array([0, 2, 3, 6])
INDICES = np.array([0, 2, 1, 0, 1, 3], dtype=np.int32)


@pytest.mark.parametrize("length", [0, 1, 3, 7])
def test_counts_are_those_of_the_last_actions(length: int) -> None:
    window = WindowState.empty(length, n_edges=4)
    played: list[int] = []
    for now, action in enumerate(np.random.default_rng(0).integers(0, 3, 30).tolist()):
        inside = played[max(0, now - length) :]
        assert window.last(now) == inside
        assert window.counts.tolist() == [sum(edge in PATHS[past] for past in inside) for edge in range(4)]
        move(window, PathRows(INDPTR, INDICES), now, action)
        played.append(action)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_an_action_enters_and_leaves_with_all_its_edges(kind: type[np.integer]) -> None:
    counts = np.zeros(4, dtype=kind)
    enter(counts, np.array([0, 2]))
    enter(counts, INDICES[3:])
    assert counts.tolist() == [2, 1, 1, 1]
    leave(counts, np.array([0, 2]))
    assert counts.tolist() == [1, 1, 0, 1]
