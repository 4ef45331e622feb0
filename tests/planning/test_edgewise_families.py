"""Plans of every family of small instances against the exact optimum."""

import numpy as np
import pytest
from edgewise_instances import FAMILIES, draw_instance, exact_optimum

from routesim.planning.edgewise.planner import plan_paths

_PER_FAMILY = 42


@pytest.mark.parametrize("family", FAMILIES)
def test_value_and_bound_enclose_the_optimum_closely(family: str) -> None:
    rng = np.random.default_rng(FAMILIES.index(family))
    earned, bounds = [], []
    for number in range(_PER_FAMILY):
        instance = draw_instance(family, number, 300_000 if number % 14 == 13 else 8_000, rng)
        lower, upper = exact_optimum(instance)
        assert upper - lower <= 1e-9 * abs(upper)
        plan = plan_paths(instance.paths, instance.rewards, instance.window)
        assert plan.value_error == 0.0
        assert plan.value <= upper + 1e-9 * abs(upper)
        assert lower <= plan.bound + 1e-9 * abs(lower)
        costs = upper < 0
        earned.append(upper / plan.value if costs else plan.value / upper)
        bounds.append(lower / plan.bound if costs else plan.bound / lower)
    assert min(earned) >= (0.8 if family == "threshold" else 0.9)
    assert np.mean(earned) >= 0.97
    assert np.mean(bounds) <= 1.03


def test_the_bound_holds_for_tables_that_rise_with_the_count() -> None:
    rng = np.random.default_rng(99)
    for number in range(42):
        instance = draw_instance("any table", number, 3_000, rng)
        lower, upper = exact_optimum(instance)
        plan = plan_paths(instance.paths, instance.rewards, instance.window)
        assert plan.value <= upper + 1e-9
        assert lower <= plan.bound + 1e-9
