"""Tables and figures of sweeps, from rows alone."""

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from routesim.errors import InputError
from routesim.report.sweep import measure, plot_sweep
from routesim.runner.sweep import verdict, write_table


def row(field: Any, learner: str, trip: float, *, informed: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "city.window": field,
        "learner": learner,
        "informed": informed,
        "mean_trip_s": trip,
        "plus_minus_s": 0.25,
        **more,
    }


def test_a_row_is_judged_by_cost_then_trip_then_the_regret_after_all_rounds() -> None:
    assert measure(row(1, "A", 5.0)) == (5.0, 0.25, "mean trip, s")
    assert measure(row(1, "A", 5.0, plus_minus_s=None)) == (5.0, None, "mean trip, s")
    assert measure(row(1, "A", 5.0, mean_cost=7.0, mean_cost_plus_minus=2.0)) == (7.0, 2.0, "mean cost of a trip")
    regrets = {
        "average_regret_1000": 0.3,
        "average_regret_5000": 0.2,
        "plus_minus_5000": 0.1,
        "average_regret_9000": None,
    }
    assert measure({"learner": "A", **regrets}) == (0.2, 0.1, "average regret")
    assert measure({"learner": "A"}) is None


def test_the_verdict_counts_points_and_leaves_out_who_was_told() -> None:
    rows = [
        row(1, "A", 5.0),
        row(1, "B", 6.0),
        row(1, "Oracle", 1.0, informed=True),
        row(2, "A", 8.0),
        row(2, "B", 7.0),
        row(3, "A", 8.0),
        row(3, "B", 7.0),
    ]
    assert verdict(rows, ["city.window"]) == "Best of those that had to learn: B at 2 of 3 points, A at 1 of 3 points."
    assert "Every learner here was told" in verdict(rows[2:3], ["city.window"])


def test_ties_are_no_wins() -> None:
    overlap = [row(1, "A", 5.0), row(1, "B", 5.5), row(1, "C", 5.6)]  # 5 + 0.25 reaches 5.5 - 0.25, not 5.6 - 0.25
    won = [row(2, "A", 5.0), row(2, "B", 5.51), row(2, "C", 9.0)]
    rule = "; a tie is equal values, or 95 % intervals that overlap."
    assert verdict(overlap + won, ["city.window"]) == (
        f"Best of those that had to learn: A and B tied at 1 of 2 points, A at 1 of 2 points{rule}"
    )
    single = [row(1, "A", 5.0, plus_minus_s=None), row(1, "B", 5.01, plus_minus_s=None)]
    assert verdict(single, ["city.window"]) == "Best of those that had to learn: A at 1 of 1 point."
    equal = [row(1, "A", 5.0, plus_minus_s=None), row(1, "B", 5.0, plus_minus_s=None)]
    assert verdict(equal, ["city.window"]) == f"Best of those that had to learn: A and B tied at 1 of 1 point{rule}"


def test_a_table_has_every_column_in_every_row(tmp_path: Path) -> None:
    rows = [row(1, "A", 5.0), row("auto", "A", 6.0, bound_s=4.0), row(0.5, "A, B", 6.0)]
    full = write_table(tmp_path, rows)
    table = parquet.read_table(tmp_path / "table.parquet").to_pylist()
    assert [one["bound_s"] for one in full] == [one["bound_s"] for one in table] == [None, 4.0, None]
    assert [one["city.window"] for one in table] == ["1", "auto", "0.5"]  # words and numbers are words
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0] == "city.window,learner,informed,mean_trip_s,plus_minus_s,bound_s"
    assert lines[3] == '0.5,"A, B",False,6.0,0.25,'


@pytest.mark.parametrize("values", [[1, 2, 4], ["linear", "bpr"], [True, False]])
def test_a_figure_has_a_line_a_learner_and_a_panel_a_further_value(values: list[Any], tmp_path: Path) -> None:
    rows = [row(value, learner, 5.0, other=other) for value in values for learner in ("A", "B") for other in ("x", "y")]
    figure = plot_sweep(rows, ["city.window", "other"], tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").stat().st_size > 0
    shown = {axes.get_title(): [line.get_label() for line in axes.get_lines()] for axes in figure.axes}
    across = figure.axes[0].get_xlabel()
    assert across == "city.window"
    assert shown == {"other x": ["A", "B"], "other y": ["A", "B"]}


def test_many_panels_become_lines(tmp_path: Path) -> None:
    rows = [row(value, "A", 5.0, other=other) for value in range(20) for other in range(15)]
    figure = plot_sweep(rows, ["city.window", "other"], tmp_path / "sweep.png")
    assert len(figure.axes) == 1
    assert [line.get_label() for line in figure.axes[0].get_lines()][:2] == ["A, other 0", "A, other 1"]


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no measure"):
        plot_sweep([{"city.window": 1, "learner": "A"}], ["city.window"], tmp_path / "sweep.png")
