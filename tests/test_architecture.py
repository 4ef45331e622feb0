"""Imports go one way only, heavy packages come late, the public names stay, and nothing grows beyond its limit."""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
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
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
MOST_FLAT_MODULES = 12
MOST_PARAMETERS = 12
MOST_LINES = 400
ARRAYS = {f"NDArray[np.{kind}]" for kind in ("float64", "int64", "int32", "bool_")}


def place(path: Path, node: ast.AST | None = None) -> str:
    line = "" if node is None else f":{node.lineno}"
    return path.relative_to(PACKAGE).as_posix() + line


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    for path, tree in TREES.items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, kinds))


def imported_layers(path: Path) -> set[str]:
    layers = set()
    for node in ast.walk(TREES[path]):
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
            "compare_counts",
            "UniformContexts",
            "Travellers",
            "RoadFeatures",
            "GaussianContexts",
            "ContextualEnvironment",
            "Comparator",
            "CountComparison",
            "TripCosts",
            "Assignment",
            "Band",
            "DayToDay",
            "Demand",
            "Feedback",
            "Incident",
            "SignalTimes",
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
            "SumoSimulator",
            "Calibration",
            "calibrate",
            "calibration",
            "__version__",
            "assign",
            "congestion",
            "day_to_day",
            "draw_map",
            "geh",
            "plot_counts",
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
            "run_scenario",
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


def test_the_package_is_rooms_with_few_flat_modules_beside_them() -> None:
    flat = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(flat) <= MOST_FLAT_MODULES, f"put a module into a room: {', '.join(flat)}"


def test_every_room_and_every_module_says_its_subject() -> None:
    folders = {path.parent for path in TREES}
    assert folders == {path.parent for path in TREES if path.name == "__init__.py"}, "a room has an __init__.py"
    assert [place(path) for path, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_no_function_takes_many_parameters() -> None:
    many = {}
    for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda):
        given = node.args
        named = [
            one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg not in {"self", "cls"}
        ]
        n = len(named) + bool(given.vararg) + bool(given.kwarg)
        if n > MOST_PARAMETERS:
            many[place(path, node)] = n
    assert many == {}, "group them in a NamedTuple that means something"


def test_a_long_file_says_why() -> None:
    long = {}
    for path, tree in TREES.items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MOST_LINES and "long because" not in (ast.get_docstring(tree) or "").lower():
            long[place(path)] = lines
    assert long == {}, 'split it by a subject, or say in its docstring that it is "long because" of what'


def test_the_name_of_a_class_is_used_once() -> None:
    homes = defaultdict(list)
    for path, node in nodes(ast.ClassDef):
        homes[node.name].append(place(path, node))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_the_types_of_arrays_are_named_in_one_place() -> None:
    named = []
    for path, tree in TREES.items():
        for node in tree.body:
            is_assigned = isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            if is_assigned and ast.unparse(node.value) in ARRAYS and path != PACKAGE / "arrays.py":
                named.append(place(path, node))
    assert named == [], "take the names of routesim.arrays"
