"""A record comes back from its folder as it was, and a damaged folder is named."""

from pathlib import Path

import numpy as np
import pytest

import routesim as rs
from routesim.errors import InputError, ResultsError
from routesim.results.record import Played, Record

NAN = float("nan")


def played(label: str, share: float) -> Played:
    shares = np.array([[share, 1 - share], [1.0, 0.0], [0.25, 0.25]])
    loads = shares[:, [0, 1, 1]] * 4.0
    ones = np.arange(3.0)
    return Played(label, False, loads, 1 + loads / 2, shares, np.array([10.0, NAN]), ones, ones - 0.5, ones + 0.5)


def record(**changes: object) -> Record:
    values: dict[str, object] = {
        "title": "a title",
        "clock": "rounds",
        "window": 4.0,
        "measure": "mean trip, s",
        "step_ends": np.array([10.0, 20.0, 30.0]),
        "edges": np.array([3, 5, 9], dtype=np.int32),
        "routes": ((3,), (5, 9)),
        "learners": (played("one", 0.5), played("two", 0.0)),
        "network": rs.load_city("helsinki"),
        "references": {"best possible": np.array([1.0, NAN, 2.0])},
    }
    return Record(**(values | changes))  # type: ignore[arg-type]  # made up on purpose


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    before = record()
    before.write(tmp_path)
    after = Record.read(tmp_path)
    for name in ("title", "clock", "window", "measure", "routes"):
        assert getattr(after, name) == getattr(before, name)
    for one, other in zip(before.learners, after.learners, strict=True):
        for name in ("loads", "ratios", "shares", "route_values", "curve", "lower", "upper"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(after.references["best possible"], [1.0, NAN, 2.0])
    assert after.network is not None
    assert before.network is not None
    assert after.network.equals(before.network)


def test_arms_have_no_roads(tmp_path: Path) -> None:
    record(network=None).write(tmp_path)
    assert Record.read(tmp_path).network is None


@pytest.mark.parametrize("name", ["record.json", "edges.parquet", "routes.parquet", "network.npz"])
def test_a_damaged_folder_is_named(tmp_path: Path, name: str) -> None:
    record().write(tmp_path)
    (tmp_path / name).write_bytes(b"nonsense")
    with pytest.raises((ResultsError, rs.RoutesimError), match=tmp_path.name):
        Record.read(tmp_path)


def test_shapes_and_labels_are_checked() -> None:
    with pytest.raises(InputError, match="loads of one need shape"):
        record(edges=np.array([3, 5], dtype=np.int32))
    with pytest.raises(InputError, match="labels that differ"):
        record(learners=(played("one", 0.5), played("one", 0.5)))
    with pytest.raises(InputError, match="not among the"):
        record(routes=((3,), (5_000,)))
