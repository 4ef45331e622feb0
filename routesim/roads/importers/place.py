"""The roads of a named place, downloaded once through osmnx and repeated from a cache -> RoadNetwork."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routesim.errors import NetworkError
from routesim.roads.importers.archive import load, save
from routesim.roads.importers.graph import OSM_ATTRIBUTION, SIGNALS_TAG
from routesim.roads.importers.simplify import CLOSED_WAYS, Streets, network_from_streets
from routesim.roads.importers.tags import DRIVABLE, LEFT_OUT, USED_TAGS, Road, judge, read_road, was_turned
from routesim.roads.network import RoadNetwork

if TYPE_CHECKING:
    import networkx as nx

_BUSY = {429, 504}
_LONGEST_WAIT_S = 120.0
_RULES = 2  # raised when the rules of `tags` change, so that copies made by older ones are not used
# What Overpass is asked for: every road of a class cars drive on. Which of them they may use is decided here.
_FILTER = "".join(
    [f'["highway"~"^({"|".join(sorted(DRIVABLE))})$"]', *(f'["{tag}"!~"{text}"]' for tag, text in LEFT_OUT.items())]
)


class _BusyError(Exception):
    """The server asked to come back later."""

    def __init__(self, status: int, wait_s: float | None) -> None:
        super().__init__(f"the server answered {status}, too busy")
        self.wait_s = wait_s


def from_place(
    query: str,
    *,
    largest_component: bool = True,
    simplify: bool = True,
    cache_folder: str | Path | None = None,
    refresh: bool = False,
    overpass_url: str | None = None,
    nominatim_url: str | None = None,
    timeout_s: float = 180.0,
    retries: int = 3,
    retry_wait_s: float = 15.0,
) -> RoadNetwork:
    """Return the roads of a place that OpenStreetMap knows by name, such as "Piedmont, California, USA".

    The first call downloads them; later calls, also without a network, read the copy in `cache_folder` (by
    default `routesim` in the user's cache folder, or where ROUTESIM_CACHE points) until `refresh` is True.
    Which roads cars may use, and in which directions, is decided as in `from_osm`. A server that is busy is
    asked again up to `retries` times. Own servers may be named by their URLs.
    """
    if not 0 < len(str(query).strip()) <= 500:
        raise NetworkError(f"a place is a text of up to 500 characters, got {query!r:.80}")
    if not (timeout_s > 0 and retries >= 0 and retry_wait_s >= 0):
        raise NetworkError("timeout_s must be above 0, retries and retry_wait_s at least 0")
    folder = Path(cache_folder) if cache_folder is not None else _default_cache()
    asked = [query.strip(), largest_component, simplify, overpass_url, nominatim_url, _RULES]
    copy = folder / f"{_slug(query)}-{hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]}.npz"
    if not refresh and copy.is_file():
        try:
            return load(copy)
        except NetworkError:
            pass  # a damaged copy is no copy: download again
    settings: dict[str, Any] = {"requests_timeout": timeout_s}
    if overpass_url is not None:
        settings["overpass_url"] = overpass_url
    if nominatim_url is not None:
        settings["nominatim_url"] = nominatim_url
    graph = _download(query.strip(), settings, retries, retry_wait_s, copy)
    try:
        network = network_from_streets(
            _streets(graph),
            largest_component=largest_component,
            simplify=simplify,
            name=query.strip(),
            attribution=OSM_ATTRIBUTION,
        )
    except NetworkError as error:
        raise NetworkError(f"the roads of {query!r}: {error}") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NetworkError(f"cannot make the cache folder {folder}: {error}; pass cache_folder") from None
    save(network, copy)
    return network


def _default_cache() -> Path:
    stated = os.environ.get("ROUTESIM_CACHE")
    if stated:
        return Path(stated)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "routesim"


def _slug(query: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", query.lower()).strip("-")[:40] or "place"


def _download(query: str, settings: dict[str, Any], retries: int, retry_wait_s: float, copy: Path) -> nx.MultiDiGraph:
    import osmnx

    for attempt in range(retries + 1):
        try:
            with _osmnx_settings(**settings):
                return osmnx.graph_from_place(query, custom_filter=_FILTER, simplify=False, retain_all=True)
        except _BusyError as busy:
            problem: Exception = busy
            if attempt < retries:
                time.sleep(min(busy.wait_s if busy.wait_s is not None else retry_wait_s, _LONGEST_WAIT_S))
        except Exception as error:
            # Whatever a remote server, a proxy or osmnx may come up with is the same to the user: no roads.
            problem = error
            break
    raise NetworkError(
        f"cannot download the roads of {query!r} ({type(problem).__name__}: {str(problem)[:300]}), "
        f"and there is no copy in {copy.parent}; check the name and the connection, or use from_osm"
    ) from None


@contextmanager
def _osmnx_settings(**settings: Any) -> Iterator[None]:
    """Change osmnx's settings and the resolver it replaces, and put everything back."""
    import osmnx

    def refuse_busy(response: Any, *_: Any, **__: Any) -> None:
        # osmnx would sleep and ask again without end; here a busy server is an event the caller counts.
        if response.status_code in _BUSY:
            wait = response.headers.get("Retry-After", "")
            response.close()
            raise _BusyError(response.status_code, float(wait) if wait.isdecimal() else None)

    wanted = {
        "use_cache": False,
        "all_oneway": True,  # every way once, with its own `oneway`: the directions are read here
        "overpass_rate_limit": False,
        "doh_url_template": None,
        "log_file": False,
        "requests_kwargs": {**osmnx.settings.requests_kwargs, "hooks": {"response": refuse_busy}},
        "useful_tags_node": sorted({*osmnx.settings.useful_tags_node, "highway"}),
        "useful_tags_way": sorted({*osmnx.settings.useful_tags_way, *USED_TAGS}),
        **settings,
    }
    before = {key: getattr(osmnx.settings, key) for key in wanted}
    resolver = socket.getaddrinfo
    try:
        for key, value in wanted.items():
            setattr(osmnx.settings, key, value)
        yield
    finally:
        for key, value in before.items():
            setattr(osmnx.settings, key, value)
        socket.getaddrinfo = resolver


def _streets(graph: nx.MultiDiGraph) -> Streets:
    """Take the pieces of an unsimplified osmnx graph apart."""
    labels = list(graph.nodes)
    index = {label: i for i, label in enumerate(labels)}
    roads: list[Road] = []
    codes: dict[Any, tuple[int, bool] | None] = {}
    closed = 0
    tails, heads, road, backward = [], [], [], []
    for u, v, data in graph.edges(data=True):
        way = data.get("osmid")
        if way not in codes:
            tags = {key: value for key, value in data.items() if isinstance(value, str)}
            verdict = judge(tags)
            closed += verdict == "closed"
            codes[way] = (len(roads), was_turned(tags)) if verdict == "drivable" else None
            if verdict == "drivable":
                roads.append(read_road(tags))
        known = codes[way]
        if known is None or u == v:
            continue
        code, turned = known
        # osmnx has turned the points of a way with oneway=-1.
        first, second = (index[v], index[u]) if turned else (index[u], index[v])
        for tail, head, used, back in (
            (first, second, roads[code].forward, False),
            (second, first, roads[code].backward, True),
        ):
            if used:
                tails.append(tail)
                heads.append(head)
                road.append(code)
                backward.append(back)
    return Streets(
        node_ids=np.array(labels, dtype=np.int64),
        lon=np.array([graph.nodes[label]["x"] for label in labels], dtype=np.float64),
        lat=np.array([graph.nodes[label]["y"] for label in labels], dtype=np.float64),
        tails=np.array(tails, dtype=np.int64),
        heads=np.array(heads, dtype=np.int64),
        road=np.array(road, dtype=np.int64),
        backward=np.array(backward, dtype=np.bool_),
        roads=roads,
        signals=np.array([graph.nodes[label].get("highway") == SIGNALS_TAG for label in labels], dtype=np.bool_),
        left_out={CLOSED_WAYS: closed},
    )
