"""Imports go one way only, heavy packages come late, and the public names stay."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import routesim as rs
from routesim import registry

PACKAGE = Path(rs.__file__).parent
# Rooms from the ground up: a module imports from its own room and from those before it.
ORDER = [
    "errors",
    "arrays",
    "registry",
    "checks",
    "kernels",
    "storage",
    "roads",
    "demand",
    "travellers",
    "congestion",
    "rounds",
    "planning",
    "assignment",
    "learners",
    "traffic",
    "results",
    "experiment",
    "gym",
    "report",
    "scenario",
    "runner",
    "serve",
    "console",
    "cli",
    "__main__",
]
# A RoadNetwork, a Run and Traffic show themselves in a notebook.
LATE = {
    "roads/network.py": {"report"},
    "results/run.py": {"report"},
    "traffic/result.py": {"report"},
}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def imported_layers(path: Path) -> set[str]:
    layers = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            names = [f"routesim.{alias.name}" for alias in node.names] if module == "routesim" else [module]
        layers |= {name.split(".")[1] for name in names if name.startswith("routesim.")}
    return layers


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_from_above(path: Path) -> None:
    layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert layer in ORDER, f"{layer} has no place in the order yet"
    allowed = set(ORDER[: ORDER.index(layer) + 1])
    assert imported_layers(path) - LATE.get(path.relative_to(PACKAGE).as_posix(), set()) <= allowed


def test_the_public_names_are_these_and_the_learners_and_routers() -> None:
    assert rs.__all__ == sorted(
        {
            *registry.learners(),
            *registry.routers(),
            "ActionSet",
            "DrawnContexts",
            "compare",
            "UniformContexts",
            "Travellers",
            "RoadFeatures",
            "GaussianContexts",
            "ContextualEnvironment",
            "Comparator",
            "TripCosts",
            "Assignment",
            "Band",
            "Demand",
            "Feedback",
            "Learner",
            "Observation",
            "Plan",
            "RoadNetwork",
            "RoundEnvironment",
            "RoundsEnv",
            "TrafficEnv",
            "Resumable",
            "Router",
            "RoutesimError",
            "Run",
            "Task",
            "Traffic",
            "TrafficSimulator",
            "__version__",
            "assign",
            "congestion",
            "draw_map",
            "physics",
            "list_cities",
            "load_city",
            "load_demand",
            "load_zones",
            "plan",
            "plot_regret",
            "regret_band",
            "replicate",
            "run",
        }
    )
    assert dir(rs) == rs.__all__
    for name in rs.__all__:
        assert getattr(rs, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = rs.nonsense


def test_the_learners_and_routers_that_users_rely_on_stay() -> None:
    learners = "CARCB CARMAB EpsilonGreedy GreedyCongestion LinUCB Oracle RandomPath ShortestPath ThompsonSampling UCB1"
    routers = "CARCBRouter CARMABRouter CompliantRouter FreeFlowRouter GreedyRouter LogitRouter PlannedRouter"
    assert set(learners.split()) <= set(registry.learners())
    assert set(routers.split()) <= set(registry.routers())
    assert set(registry.congestion_functions()) >= {
        "inverse",
        "reciprocal",
        "linear",
        "threshold",
        "bpr",
        "table",
        "constant",
    }


@pytest.mark.parametrize("statement", ["import routesim", "import routesim.cli"])
def test_importing_is_cheap(statement: str) -> None:
    heavy = ("numpy", "numba", "scipy", "matplotlib", "pyarrow", "pydantic", "networkx", "gymnasium", "fastapi")
    code = f"{statement}; import sys; print([name for name in {heavy} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
