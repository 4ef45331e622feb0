"""The page of a record: two learners on maps side by side in time, curves, routes and roads, in one file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from routesim.checks import whole
from routesim.errors import InputError
from routesim.report import palette
from routesim.report.assets import Markup, bare_map, own_file, render, write_text
from routesim.report.drawing import Drawing, draw, ends, pair_of
from routesim.report.packing import Bulk, pack_lines, quantise, safe_json
from routesim.report.plots import class_shares
from routesim.report.queues import queue_content
from routesim.report.routes_table import edge_name, route_rows

if TYPE_CHECKING:
    from routesim.results.record import Played, Record
    from routesim.roads.network import RoadNetwork

UNUSED = 255
_SCRIPTS = ("words", "roads", "charts", "queues", "maps", "cards", "page")
_MAJOR = ("motorway", "trunk", "primary")
_MIDDLE = ("secondary", "tertiary")
_CLEAR = 1.5e-5  # degrees that a backdrop line may be off, less than a pixel unless one looks very closely
_MOST_RATIO = 1e6
_MOST_BADGES = 12
_SCRIPT_DASHES = {"-": "", "--": "8 4", "-.": "8 3 2 3", ":": "2 3"}
_PANE = (
    '<section class="pane"><div class="pane-head"><select aria-label="Learner of this map"></select>'
    '<span class="informed"></span><output></output></div><div class="map-box">'
)


def write_page(
    path: str | Path, record: "Record", *, learners: Sequence[str] | None = None, step: int | None = None
) -> None:
    """Write one self-contained page of a record.

    `learners` names the one or two that are shown at first, the record's first two unless told; all can be chosen in
    the page. `step` is the step of time shown at first, counted from 0 or backwards from -1; unless told, the last of
    rounds, and of traffic the one with the longest queues or, without queues, the busiest.
    """
    write_text(path, page_text(record, learners=learners, step=step))


def page_text(record: "Record", *, learners: Sequence[str] | None = None, step: int | None = None) -> str:
    """Return the page that `write_page` writes."""
    shown = _shown(record, learners)
    steps = len(record.step_ends)
    if steps == 0:
        raise InputError("a page needs a record with at least one step of time, got none")
    chosen = _telling_step(record) if step is None else whole("step", step, least=-steps)
    if not -steps <= chosen < steps:
        raise InputError(f"steps run from 0 to {steps - 1} (or -1 for the last), got {chosen}")
    bulk = Bulk()
    data = {**_content(record, bulk), "shown": shown, "step": chosen % steps}
    data["sections"] = bulk.sections
    before, after = own_file("page.html").split("<!-- maps -->")
    maps = [bare_map(f"of_{side}") for side in ("left", "right")[: len(shown)]]
    parts: list[Any] = [Markup("before", before)]
    for number, one in enumerate(maps):
        parts += [Markup(f"pane_{number}", _PANE), one, Markup(f"end_{number}", "</div></section>")]
    holders = (
        f'<script type="application/json" id="data">{safe_json(data)}</script>'
        f'<script type="text/plain" id="bulk">{bulk.text()}</script>'
    )
    code = "\n".join(own_file(f"{name}.js") for name in _SCRIPTS)
    names = ", ".join(one.get_name() for one in maps)
    parts.append(Markup("after", after + holders, f"{code}\nPage.start([{names}]);"))
    return render(record.title, own_file("page.css"), parts)


def _shown(record: "Record", learners: Sequence[str] | None) -> list[int]:
    labels = [played.label for played in record.learners]
    if learners is None:
        return list(range(min(2, len(labels))))
    wanted = [learners] if isinstance(learners, str) or not isinstance(learners, Sequence) else list(learners)
    if not all(isinstance(label, str) for label in wanted):
        raise InputError(f"learners are named by their labels, got {wanted!r:.80}; there are {', '.join(labels)}")
    found = [_place(label, labels) for label in wanted]
    if not 1 <= len(found) <= 2 or len(set(found)) < len(found):
        raise InputError(f"a page shows one learner or two that differ at first, got {wanted}")
    return found


def _place(wanted: str, labels: Sequence[str]) -> int:
    """Return the learner with this label, or the only one whose label begins so."""
    found = [number for number, label in enumerate(labels) if label == wanted]
    found = found or [number for number, label in enumerate(labels) if label.startswith(wanted)]
    if len(found) != 1:
        what = "several learners begin with" if found else "no learner"
        raise InputError(f"{what} {wanted!r} in this record; it has {', '.join(map(repr, labels))}")
    return found[0]


def _telling_step(record: "Record") -> int:
    """Return the last step where time is in rounds, else the one with most vehicles in queues or with most traffic."""
    if record.clock == "rounds":
        return len(record.step_ends) - 1
    queues = [played.standing.queued + played.standing.outside for played in record.learners if played.standing]
    if queues and any(queue.any() for queue in queues):
        return int(np.argmax(sum(queue.sum(axis=1) for queue in queues)))
    return int(np.argmax(sum(played.loads.sum(axis=1) for played in record.learners)))


def _content(record: "Record", bulk: Bulk) -> dict[str, Any]:
    """Return what the page's script reads as JSON, and put the long arrays into `bulk`."""
    drawing, network = draw(record), record.network
    on_routes = (edge for route in record.routes for edge in route)
    edges = np.union1d(record.edges, np.fromiter(on_routes, dtype=np.int64)).astype(np.int64)
    for number, lines in enumerate(_backdrop(network, drawing)):
        bulk.add(f"roads{number}", pack_lines(lines))
    bulk.add("edgeLines", pack_lines(drawing.lines[edge] for edge in edges.tolist()))
    names, kinds = _edge_facts(network, edges, bulk)
    place = {edge: number for number, edge in enumerate(edges.tolist())}
    bulk.add("routeEdges", np.array([place[edge] for route in record.routes for edge in route], dtype=np.int32))
    starts = np.cumsum([0, *(len(route) for route in record.routes)])
    bulk.add("routeStarts", starts.astype(np.int32))
    most_load = max((float(played.loads.max(initial=0.0)) for played in record.learners), default=0.0)
    ratios = [np.clip(np.nan_to_num(played.ratios, nan=1.0), 1.0, _MOST_RATIO) for played in record.learners]
    most_ratio = max(1.01, *(float(ratio.max(initial=1.0)) for ratio in ratios))
    for number, (played, ratio) in enumerate(zip(record.learners, ratios, strict=True)):
        _learner_arrays(bulk, number, record, played, ratio, edges, most_load, most_ratio)
    ranges = palette.class_ranges()
    return {
        "title": record.title,
        "place": "" if network is None else network.name.replace("_", " ").title(),
        "clock": record.clock,
        "window": record.window,
        "measure": record.measure,
        "start": record.start,
        "stepEnds": record.step_ends.tolist(),
        "arms": network is None,
        "schematic": drawing.schematic,
        "located": drawing.located,
        "openStreetMap": "OpenStreetMap" in drawing.credit,
        "credit": drawing.credit,
        "classes": [
            {"word": one.word, "range": text, "light": one.light, "dark": one.dark, "width": one.width}
            for one, text in zip(palette.LOAD_CLASSES, ranges, strict=True)
        ],
        "learners": [_learner(number, played) for number, played in enumerate(record.learners)],
        "references": [{"name": name, "values": _plain(values)} for name, values in record.references.items()],
        "routes": _routes(record, drawing),
        "names": names,
        "kinds": kinds,
        "ends": _ends(record, drawing),
        "nodes": [[round(y, 5), round(x, 5), name] for x, y, name in drawing.nodes],
        "bounds": _bounds(record, drawing),
        "mostLoad": most_load,
        "mostRatio": most_ratio,
        **queue_content(record, edges, bulk),
    }


def _learner_arrays(
    bulk: Bulk,
    number: int,
    record: "Record",
    played: "Played",
    ratios: NDArray[np.float64],
    edges: NDArray[np.int64],
    most_load: float,
    most_ratio: float,
) -> None:
    """Put a learner's loads, ratios, classes and shares into `bulk`, for all edges the page shows."""
    places = np.searchsorted(edges, record.edges)
    wide = np.zeros((len(record.step_ends), len(edges)), dtype=np.uint8)
    for name, values, unused in (
        ("loads", quantise(played.loads, most_load), 0),
        ("ratios", np.round(255 * np.log(ratios) / np.log(most_ratio)).astype(np.uint8), 0),
        ("classes", np.where(played.loads > 0, palette.load_classes(ratios), UNUSED).astype(np.uint8), UNUSED),
    ):
        wide[:] = unused
        wide[:, places] = values
        bulk.add(f"{name}{number}", wide)
    bulk.add(f"shares{number}", played.shares.astype(np.float32))


def _learner(number: int, played: "Played") -> dict[str, Any]:
    colours = palette.CURVE_COLOURS, palette.DARK_CURVE_COLOURS
    dash = palette.DASHES[number // len(colours[0]) % len(palette.DASHES)]
    return {
        "label": played.label,
        "informed": played.informed,
        "physics": played.physics,
        "notices": played.notices,
        "light": colours[0][number % len(colours[0])],
        "dark": colours[1][number % len(colours[1])],
        "dash": _SCRIPT_DASHES[dash],
        "curve": _plain(played.curve),
        "lower": _plain(np.where(np.isfinite(played.lower), played.lower, played.curve)),
        "upper": _plain(np.where(np.isfinite(played.upper), played.upper, played.curve)),
        "regret": played.regret and [_plain(values) for values in played.regret],
        "quantiles": None if played.quantiles is None else _plain(played.quantiles),
        "met": np.round(class_shares(played), 4).tolist(),
    }


def _edge_facts(network: "RoadNetwork | None", edges: NDArray[np.int64], bulk: Bulk) -> tuple[list[str], list[str]]:
    """Put the facts of edges into `bulk`; return the names and the classes of roads they point to."""
    if network is None:
        names, kinds = [f"arm {edge + 1}" for edge in edges.tolist()], [""] * len(edges)
        lengths = free = np.full(len(edges), np.nan)
        twins = np.full(len(edges), -1)
    else:
        names = [edge_name(network, edge) for edge in edges.tolist()]
        kinds = [network.highways[edge] for edge in edges.tolist()]
        lengths, free = network.length_m[edges], network.free_flow_s[edges]
        tails, heads = network.tails[edges].tolist(), network.heads[edges].tolist()
        where = {pair: number for number, pair in enumerate(zip(tails, heads, strict=True))}
        twins = np.array([where.get((head, tail), -1) for tail, head in zip(tails, heads, strict=True)])
    listed = []
    for title, texts in (("edgeName", names), ("edgeKind", kinds)):
        different = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        bulk.add(title, np.array([different[text] for text in texts], dtype=np.int32))
        listed.append(list(different))
    bulk.add("edgeLength", lengths.astype(np.float32))
    bulk.add("edgeFree", free.astype(np.float32))
    bulk.add("edgeTwin", twins.astype(np.int32))
    return listed[0], listed[1]


def _backdrop(network: "RoadNetwork | None", drawing: Drawing) -> list[list[NDArray[np.float64]]]:
    """Return the lines of small, middle and large roads; a street with two directions counts once."""
    if network is None:
        return [list(drawing.lines.values()), [], []]
    return backdrop(network, drawing)


def backdrop(network: "RoadNetwork", drawing: Drawing) -> list[list[NDArray[np.float64]]]:
    """Return simplified lines by size of road: small, middle, large."""
    import shapely

    groups: list[dict[bytes, NDArray[np.float64]]] = [{}, {}, {}]
    for edge, line in drawing.lines.items():
        kind = network.highways[edge].removesuffix("_link")
        size = 2 if kind in _MAJOR else 1 if kind in _MIDDLE else 0
        whole = np.round(line * 1e5).astype(np.int32)
        forth, back = whole.tobytes(), whole[::-1].tobytes()
        groups[size].setdefault(min(forth, back), line)
    simple = []
    for group in groups:
        lines = shapely.simplify([shapely.LineString(line) for line in group.values()], _CLEAR)
        simple.append([shapely.get_coordinates(line) for line in lines])
    return simple


def _routes(record: "Record", drawing: Drawing) -> list[dict[str, Any]]:
    badges = _badges(record, drawing)
    return [
        {
            "via": row.via,
            "length": row.length_m,
            "freeFlow": row.free_flow_s,
            "values": _plain(np.array(row.values)),
            "overall": [round(share, 5) for share in row.shares],
            "badge": badges.get(row.route - 1),
        }
        for row in route_rows(record)
    ]


def _badges(record: "Record", drawing: Drawing) -> dict[int, list[float]]:
    """Return places for the numbers of the first routes: where a route is most alone, and far from other numbers."""
    uses: dict[int, int] = {}
    for route in record.routes:
        for edge in set(route):
            uses[edge] = uses.get(edge, 0) + 1
    taken: list[NDArray[np.float64]] = []
    badges = {}
    for number, route in enumerate(record.routes[:_MOST_BADGES]):
        if not route:
            continue
        fewest = min(uses[edge] for edge in route)
        middles = [_middle(drawing.lines[edge]) for edge in route if uses[edge] == fewest]
        spaced = [min((float(np.hypot(*(at - other))) for other in taken), default=0.0) for at in middles]
        best = middles[int(np.argmax(spaced))] if taken else middles[len(middles) // 2]
        taken.append(best)
        badges[number] = [round(float(best[1]), 6), round(float(best[0]), 6)]
    return badges


def _middle(line: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the point half way along a line."""
    far = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))))
    return np.array([np.interp(far[-1] / 2, far, column) for column in line.T])


def _ends(record: "Record", drawing: Drawing) -> list[dict[str, list[float]]]:
    """Return where the origin and the destination of each pair lie."""
    longest: dict[int, tuple[int, ...]] = {}
    for route in record.routes if ends(record) else ():
        pair = pair_of(record, route) if route else -1
        if pair >= 0 and len(route) > len(longest.get(pair, ())):
            longest[pair] = route
    found = []
    for _, route in sorted(longest.items()):
        first, last = drawing.lines[route[0]][0], drawing.lines[route[-1]][-1]
        found.append({name: [float(at[1]), float(at[0])] for name, at in (("origin", first), ("destination", last))})
    return found


def _bounds(record: "Record", drawing: Drawing) -> list[float]:
    """Return south, west, north, east of the routes, or of most used edges where trips go everywhere."""
    edges: Iterable[int] = {edge for route in record.routes for edge in route}
    if drawing.schematic or not edges:
        edges = drawing.lines
    elif not ends(record):
        edges = record.edges.tolist()
    points = np.concatenate([drawing.lines[edge] for edge in edges])
    outer = (0, 100) if drawing.schematic or ends(record) else (1, 99)
    (west, south), (east, north) = (np.percentile(points, part, axis=0) for part in outer)
    return [round(float(value), 6) for value in (south, west, north, east)]


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]
