"""Record: what a page shows of a scenario's runs, step by step in time: loads, routes and curves of each learner."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.errors import InputError, ResultsError
from routesim.results.bands import Curve
from routesim.roads.network import RoadNetwork
from routesim.rounds.trace import PERCENTILES
from routesim.storage.folders import NETWORK, write_json

RECORD = "record.json"
EDGES = "edges.parquet"
ROUTES = "routes.parquet"


@dataclass(frozen=True, eq=False)
class Played:
    """One learner's part, over steps of time, edges and routes of the record; replications are averaged.

    `loads[step, edge]` is the mean number of uses inside a window, `ratios[step, edge]` how many times dearer than
    empty the edge was to those who used it in the step (1 when unused). `shares[step, route]` is the route's share of
    what was recommended in the step; routes that are not shown make up the rest. `route_values[route]` is the mean
    trip (seconds or cost, or reward) when it was recommended, NaN if it never was. `curve` is the mean of the record's
    measure in each step, between `lower` and `upper` at 95 %; NaN where a step has nothing to measure. `regret` is the
    average regret up to the end of each step, None where there is nothing to compare with. `quantiles` are the
    percentiles 0 to 100 of single trips, in seconds or as the measure has them and without noise in rounds; None where
    only means are known. `overall[route]` is its share of all that was recommended; None where steps weigh as much as
    they are long.
    """

    label: str
    informed: bool
    loads: Floats
    ratios: Floats
    shares: Floats
    route_values: Floats
    curve: Floats
    lower: Floats
    upper: Floats
    regret: Curve | None = None
    quantiles: Floats | None = None
    overall: Floats | None = None


@dataclass(frozen=True, eq=False)
class Record:
    """What happened, thinned to at most some dozens of steps of time.

    `clock` says what time is counted in; `step_ends` are round numbers or seconds, and the first step begins at
    `start`. `edges` are the indices of the edges ever used, `routes` the most recommended routes as tuples of edge
    indices. `network` is None for plain arms, where edge j is arm j. `references` are further curves over the steps,
    such as the best possible.
    """

    title: str
    clock: Literal["rounds", "seconds"]
    window: float
    measure: str
    step_ends: Floats
    edges: NDArray[np.int32]
    routes: tuple[tuple[int, ...], ...]
    learners: tuple[Played, ...]
    network: RoadNetwork | None = None
    references: dict[str, Floats] = field(default_factory=dict)
    start: float = 0.0

    def __post_init__(self) -> None:
        steps, edges, routes = len(self.step_ends), len(self.edges), len(self.routes)
        if not self.learners:
            raise InputError("a record needs at least one learner, got none")
        if len({played.label for played in self.learners}) < len(self.learners):
            raise InputError("the learners of a record need labels that differ")
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("loads", "ratios"), (steps, edges))
        shapes |= {
            "shares": (steps, routes),
            "route_values": (routes,),
            "curve": (steps,),
            "lower": (steps,),
            "upper": (steps,),
        }
        for played in self.learners:
            for name, shape in shapes.items():
                if getattr(played, name).shape != shape:
                    got = getattr(played, name).shape
                    raise InputError(f"{name} of {played.label} need shape {shape}, got {got}")
            if any(values.shape != (steps,) for values in played.regret or ()):
                raise InputError(f"the regret of {played.label} needs one value for each of the {steps} steps")
            if played.overall is not None and played.overall.shape != (routes,):
                raise InputError(f"the overall shares of {played.label} need one value for each of {routes} routes")
            if played.quantiles is not None and played.quantiles.shape != PERCENTILES.shape:
                raise InputError(f"the quantiles of {played.label} are the percentiles 0 to 100, got another number")
        if any(values.shape != (steps,) for values in self.references.values()):
            raise InputError(f"references need one value for each of the {steps} steps")
        if self.network is not None:
            highest = max((max(route) for route in self.routes if route), default=-1)
            if max(highest, int(self.edges.max(initial=-1))) >= self.network.n_edges:
                raise InputError(f"an edge of the record is not among the {self.network.n_edges} of the network")

    def write(self, folder: Path) -> None:
        """Write `record.json`, `edges.parquet`, `routes.parquet` and, with roads, `network.npz` into `folder`.

        `edges.parquet` has a row for every learner, step and edge with a load: learner, step, end (of the step, in
        rounds or seconds), edge, load, ratio. `routes.parquet`: learner, step, end, route, share.
        """
        import pyarrow as pa
        from pyarrow import parquet

        def rows(values: dict[str, str], of: str, name: str) -> "pa.Table":
            tables = []
            for played in self.learners:
                first = getattr(played, next(iter(values.values())))
                step, place = np.nonzero(first)
                columns = {column: getattr(played, source)[step, place] for column, source in values.items()}
                numbers = (self.edges if of == "edges" else np.arange(len(self.routes), dtype=np.int32))[place]
                label = pa.DictionaryArray.from_arrays(np.zeros(len(step), dtype=np.int32), pa.array([played.label]))
                when = {"step": step.astype(np.int32), "end": self.step_ends[step]}
                tables.append(pa.table({"learner": label, **when, name: numbers, **columns}))
            return pa.concat_tables(tables).unify_dictionaries()

        loads = rows({"load": "loads", "ratio": "ratios"}, "edges", "edge")
        parquet.write_table(loads, folder / EDGES, compression="zstd")
        parquet.write_table(rows({"share": "shares"}, "routes", "route"), folder / ROUTES, compression="zstd")
        content = {
            "title": self.title,
            "clock": self.clock,
            "window": self.window,
            "measure": self.measure,
            "start": self.start,
            "step_ends": self.step_ends.tolist(),
            "edges": self.edges.tolist(),
            "routes": self.routes,
            "references": {name: _plain(values) for name, values in self.references.items()},
            "learners": [
                {"label": played.label, "informed": played.informed}
                | {name: _told(getattr(played, name)) for name in (*_CURVES, *_OPTIONAL, "regret")}
                for played in self.learners
            ],
        }
        write_json(folder / RECORD, content)
        if self.network is not None:
            self.network.save(folder / NETWORK)

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read what `write` wrote."""
        source = Path(folder)
        try:
            from pyarrow import parquet

            content = json.loads((source / RECORD).read_text(encoding="utf-8"))
            loads, shares = parquet.read_table(source / EDGES), parquet.read_table(source / ROUTES)
            network = RoadNetwork.from_file(source / NETWORK) if (source / NETWORK).exists() else None
            edges = np.array(content["edges"], dtype=np.int32)
            ends = np.array(content["step_ends"], dtype=np.float64)
            routes = tuple(tuple(int(edge) for edge in route) for route in content["routes"])
            learners = []
            for one in content["learners"]:
                load, ratio = np.zeros((len(ends), len(edges))), np.ones((len(ends), len(edges)))
                share = np.zeros((len(ends), len(routes)))
                step, edge = _places(loads, one["label"], "edge")
                place = np.searchsorted(edges, edge)
                mine = np.asarray(loads["learner"]) == one["label"]
                load[step, place] = np.asarray(loads["load"])[mine]
                ratio[step, place] = np.asarray(loads["ratio"])[mine]
                step, route = _places(shares, one["label"], "route")
                share[step, route] = np.asarray(shares["share"])[np.asarray(shares["learner"]) == one["label"]]
                curves: dict[str, Any] = {name: np.array(one[name], dtype=np.float64) for name in _CURVES}
                known = [name for name in _OPTIONAL if one.get(name) is not None]
                curves |= {name: np.array(one[name], dtype=np.float64) for name in known}
                if one.get("regret") is not None:
                    curves["regret"] = Curve(*(np.array(values, dtype=np.float64) for values in one["regret"]))
                label, informed = str(one["label"]), bool(one["informed"])
                learners.append(Played(label, informed, load, ratio, share, **curves))
            return cls(
                str(content["title"]),
                "seconds" if content["clock"] == "seconds" else "rounds",
                float(content["window"]),
                str(content["measure"]),
                ends,
                edges,
                routes,
                tuple(learners),
                network,
                {str(name): np.array(values, dtype=np.float64) for name, values in content["references"].items()},
                float(content.get("start", 0.0)),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, InputError) as problem:
            raise ResultsError(f"{source} holds no record that can be read: {problem}") from problem


_CURVES = ("route_values", "curve", "lower", "upper")
_OPTIONAL = ("quantiles", "overall")


def _told(values: Floats | Curve | None) -> Any:
    """Return arrays as JSON has them, and nothing as nothing."""
    if values is None:
        return None
    return [_plain(one) for one in values] if isinstance(values, Curve) else _plain(values)


def _plain(values: Floats) -> list[float | None]:
    """Return numbers as JSON has them, where there is no NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _places(table: Any, label: str, column: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    mine = np.asarray(table["learner"]) == label
    return np.asarray(table["step"])[mine].astype(np.int64), np.asarray(table[column])[mine].astype(np.int64)
