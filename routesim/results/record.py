"""Record: what a page shows of a scenario's runs, step by step in time: loads, routes and curves of each learner."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats
from routesim.errors import InputError
from routesim.results.bands import Curve
from routesim.results.standing import COLUMNS, RoadQueues
from routesim.roads.network import RoadNetwork
from routesim.rounds.trace import PERCENTILES
from routesim.storage.folders import NETWORK, write_json
from routesim.storage.reading import (
    MOST,
    MOST_CELLS,
    column,
    float_column,
    floats,
    number,
    read_json,
    read_table,
    reading,
    text,
    truth,
    whole_column,
    wholes,
)

RECORD = "record.json"
EDGES = "edges.parquet"
ROUTES = "routes.parquet"
QUEUES = "queues.parquet"


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
    they are long. `standing` has the vehicles on the roads where these queue, None elsewhere. In traffic `physics` says
    what it did to travel times, and `notices` where that model was out of its depth.
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
    standing: RoadQueues | None = None
    physics: str = ""
    notices: tuple[str, ...] = ()


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
            if played.standing is not None:
                played.standing.check(played.label, steps, edges)
            if played.quantiles is not None and played.quantiles.shape != PERCENTILES.shape:
                raise InputError(f"the quantiles of {played.label} are the percentiles 0 to 100, got another number")
        if any(values.shape != (steps,) for values in self.references.values()):
            raise InputError(f"references need one value for each of the {steps} steps")
        self._check_time()
        self._check_edges()

    def _check_time(self) -> None:
        if not 0 <= self.window <= MOST:
            raise InputError(f"the window of a record must be at least 0 and finite, got {self.window}")
        if not (np.diff(self.step_ends, prepend=self.start) > 0).all():
            raise InputError("the steps of a record must end one after the other, and after its start")
        if not (np.isfinite(self.start) and np.isfinite(self.step_ends).all()):
            raise InputError("the steps of a record must end at finite times")

    def _check_edges(self) -> None:
        if not all(self.routes):
            raise InputError("a route of a record needs at least one edge, got none")
        if len(self.edges) > 1 and not (np.diff(self.edges) > 0).all():
            raise InputError("the edges of a record must be in order, each of them once")
        lowest = min((*map(min, self.routes), int(self.edges.min(initial=0))))
        highest = max((*map(max, self.routes), int(self.edges.max(initial=-1))))
        if lowest < 0:
            raise InputError(f"edges are numbered from 0, got {lowest}")
        if self.network is None and highest >= _MOST_ARMS:
            raise InputError(f"a record without roads shows up to {_MOST_ARMS:,} arms, got arm number {highest}")
        if self.network is not None and highest >= self.network.n_edges:
            raise InputError(f"an edge of the record is not among the {self.network.n_edges} of the network")

    def write(self, folder: Path) -> None:
        """Write `record.json`, `edges.parquet`, `routes.parquet` and, with roads, `network.npz` into `folder`.

        `edges.parquet` has a row for every learner, step and edge with a load: learner, step, end (of the step, in
        rounds or seconds), edge, load, ratio. `routes.parquet`: learner, step, end, route, share. With queues,
        `queues.parquet` has a row for every learner, step and edge with vehicles: learner, step, end, edge, on_road,
        in_queue, waiting.
        """
        import pyarrow as pa
        from pyarrow import parquet

        def part(played: Played, step: Any, columns: dict[str, Any]) -> "pa.Table":
            label = pa.DictionaryArray.from_arrays(np.zeros(len(step), dtype=np.int32), pa.array([played.label]))
            when = {"step": step.astype(np.int32), "end": self.step_ends[step]}
            return pa.table({"learner": label, **when, **columns})

        def rows(values: dict[str, str], of: str, name: str) -> "pa.Table":
            tables = []
            for played in self.learners:
                first = getattr(played, next(iter(values.values())))
                step, place = np.nonzero(first)
                columns = {column: getattr(played, source)[step, place] for column, source in values.items()}
                numbers = (self.edges if of == "edges" else np.arange(len(self.routes), dtype=np.int32))[place]
                tables.append(part(played, step, {name: numbers, **columns}))
            return pa.concat_tables(tables).unify_dictionaries()

        queues = []
        for played in self.learners:
            if played.standing is not None:
                step, place = played.standing.present()
                vehicles = {name: getattr(played.standing, of)[step, place] for name, of in COLUMNS.items()}
                queues.append(part(played, step, {"edge": self.edges[place], **vehicles}))
        if queues:
            table = pa.concat_tables(queues).unify_dictionaries()
            parquet.write_table(table, folder / QUEUES, compression="zstd")
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
                | {"physics": played.physics, "notices": list(played.notices)}
                | {"jam_density_per_km": None if played.standing is None else played.standing.jam_density_per_km}
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
        with reading(source, "record"):
            content = read_json(source / RECORD)
            network = RoadNetwork.from_file(source / NETWORK) if (source / NETWORK).exists() else None
            ends = floats(content["step_ends"], "step_ends")
            edges = np.array(wholes(content["edges"], "edges", _MOST_NUMBER), dtype=np.int32)
            routes = tuple(tuple(wholes(route, "routes", _MOST_NUMBER)) for route in content["routes"])
            queues = any(one.get("jam_density_per_km") is not None for one in content["learners"])
            cells = len(ends) * ((5 if queues else 2) * len(edges) + len(routes)) * len(content["learners"])
            if cells > MOST_CELLS:
                raise InputError(f"steps, edges, routes and learners make {cells:,} cells, at most {MOST_CELLS:,}")
            tables = [read_table(source / name) for name in (EDGES, ROUTES, *([QUEUES] if queues else []))]
            return cls(
                text(content["title"], "title"),
                _clock(content["clock"]),
                number(content["window"], "window"),
                text(content["measure"], "measure"),
                ends,
                edges,
                routes,
                tuple(_played(one, len(ends), edges, len(routes), *tables) for one in content["learners"]),
                network,
                {name: floats(values, name, missing=True) for name, values in content["references"].items()},
                number(content.get("start", 0.0), "start"),
            )


_CURVES = ("route_values", "curve", "lower", "upper")
_OPTIONAL = ("quantiles", "overall")
_MOST_ARMS = 100_000  # each is drawn, also those that nobody used
_MOST_NUMBER = (1 << 31) - 1
_MOST_NOTICES = 100


def _clock(word: Any) -> Literal["rounds", "seconds"]:
    if word not in ("rounds", "seconds"):
        raise InputError(f"the clock is rounds or seconds, got {word!r:.40}")
    return "seconds" if word == "seconds" else "rounds"


def _played(
    one: Any, steps: int, edges: NDArray[np.int32], routes: int, loads: Any, shares: Any, queues: Any = None
) -> Played:
    """Return a learner's part from its entry in the JSON file and its rows of the tables."""
    label = text(one["label"], "label")
    load, ratio, share = np.zeros((steps, len(edges))), np.ones((steps, len(edges))), np.zeros((steps, routes))
    mine = _rows_of(loads, label)
    at, used = whole_column(mine, "step", steps - 1), whole_column(mine, "edge", _MOST_NUMBER)
    if not np.isin(used, edges).all():
        raise InputError("the table of loads has edges that the record does not list")
    place = np.searchsorted(edges, used)
    load[at, place] = float_column(mine, "load")
    ratio[at, place] = column(mine, "ratio")  # an edge that pays nothing any more has an endless one
    if load.min(initial=0.0) < 0:
        raise InputError(f"loads must be at least 0, got {load.min()}")
    mine = _rows_of(shares, label)
    share[whole_column(mine, "step", steps - 1), whole_column(mine, "route", routes - 1)] = float_column(mine, "share")
    curves: dict[str, Any] = {name: floats(one[name], name, missing=True) for name in _CURVES}
    curves |= {name: floats(one[name], name) for name in _OPTIONAL if one.get(name) is not None}
    if one.get("regret") is not None:
        curves["regret"] = Curve(*(floats(values, "regret", missing=True) for values in one["regret"]))
    # Records of earlier versions have no physics, no notices and no queues.
    if one.get("jam_density_per_km") is not None:
        jam_density = number(one["jam_density_per_km"], "jam_density_per_km")
        curves["standing"] = RoadQueues.read(_rows_of(queues, label), steps, edges, jam_density)
    notices = one.get("notices", [])
    if not isinstance(notices, list) or len(notices) > _MOST_NOTICES:
        raise InputError(f"notices must be a list of at most {_MOST_NOTICES} texts, got {notices!r:.40}")
    curves["physics"] = text(one.get("physics", ""), "physics")
    curves["notices"] = tuple(text(notice, "notices") for notice in notices)
    return Played(label, truth(one["informed"], "informed"), load, ratio, share, **curves)


def _rows_of(table: Any, label: str) -> Any:
    import pyarrow as pa

    return table.filter(pa.array(np.asarray(table["learner"]) == label))


def _told(values: Floats | Curve | None) -> Any:
    """Return arrays as JSON has them, and nothing as nothing."""
    if values is None:
        return None
    return [_plain(one) for one in values] if isinstance(values, Curve) else _plain(values)


def _plain(values: Floats) -> list[float | None]:
    """Return numbers as JSON has them, where there is no NaN."""
    return [float(value) if np.isfinite(value) else None for value in values]
