"""The roads of a named place, downloaded once through osmnx and repeated from a cache -> RoadNetwork."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from routesim.errors import NetworkError
from routesim.roads.importers.archive import load, save
from routesim.roads.importers.graph import OSM_ATTRIBUTION, SIGNALS_TAG
from routesim.roads.importers.restrictions import RELATION, Pieces, Restrictions
from routesim.roads.importers.simplify import CLOSED_WAYS, Streets, connected_despite_bans, network_from_streets
from routesim.roads.importers.tags import DRIVABLE, LEFT_OUT, USED_TAGS, Road, judge, read_road, was_turned
from routesim.roads.network import RoadNetwork

if TYPE_CHECKING:
    import networkx as nx

_BUSY = {429, 504}
_LONGEST_WAIT_S = 120.0
_RULES = 3  # raised when the rules of `tags` or `restrictions` change, so that copies made by older ones are not used
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
    Which roads cars may use, in which directions, and which turns are banned is decided as in `from_osm`; turn
    restrictions are asked for separately. A server that is busy is asked again up to `retries` times. Own servers may
    be named by their URLs.
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
    asking = _Asking(query.strip(), settings, retries, retry_wait_s, copy)
    graph = asking.roads()
    try:
        network = network_from_streets(
            _streets(graph, asking.restrictions(graph)),
            largest_component=largest_component,
            simplify=simplify,
            name=query.strip(),
            attribution=OSM_ATTRIBUTION,
        )
    except NetworkError as error:
        raise NetworkError(f"the roads of {query!r}: {error}") from None
    network = connected_despite_bans(network) if largest_component else network
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


class _Asking(NamedTuple):
    """How a server is asked for what belongs to a place."""

    query: str
    settings: dict[str, Any]
    retries: int
    retry_wait_s: float
    copy: Path

    def roads(self) -> nx.MultiDiGraph:
        """Return osmnx's graph of the place, every point a node."""
        import osmnx

        return self._asked(
            "roads", lambda: osmnx.graph_from_place(self.query, custom_filter=_FILTER, simplify=False, retain_all=True)
        )

    def restrictions(self, graph: nx.MultiDiGraph) -> Restrictions:
        """Return the turn restrictions around a graph."""
        found: Restrictions = self._asked("turn restrictions", lambda: _ask_restrictions(graph))
        return found

    def _asked(self, what: str, ask: Callable[[], Any]) -> Any:
        for attempt in range(self.retries + 1):
            try:
                with _osmnx_settings(**self.settings):
                    return ask()
            except _BusyError as busy:
                problem: Exception = busy
                if attempt < self.retries:
                    time.sleep(min(busy.wait_s if busy.wait_s is not None else self.retry_wait_s, _LONGEST_WAIT_S))
            except Exception as error:
                # Whatever a remote server, a proxy or osmnx may come up with is the same to the user: no roads.
                problem = error
                break
        raise NetworkError(
            f"cannot download the {what} of {self.query!r} ({type(problem).__name__}: {str(problem)[:300]}), "
            f"and there is no copy in {self.copy.parent}; check the name and the connection, or use from_osm"
        ) from None


def _ask_restrictions(graph: nx.MultiDiGraph) -> Restrictions:
    """Ask Overpass for the restriction relations with members in the box around a graph."""
    import requests
    from osmnx import settings

    places = np.array([(data["y"], data["x"]) for _, data in graph.nodes(data=True)], dtype=np.float64)
    box = ",".join(f"{value:.7f}" for value in (*places.min(axis=0), *places.max(axis=0)))
    answer = requests.post(
        f"{settings.overpass_url}/interpreter",
        data={"data": f'[out:json][timeout:{settings.requests_timeout:.0f}];rel["type"="{RELATION}"]({box});out body;'},
        timeout=settings.requests_timeout,
        headers={"User-Agent": settings.http_user_agent, "Referer": settings.http_referer},
        **settings.requests_kwargs,
    )
    answer.raise_for_status()
    stated = answer.json()
    if "remark" in stated:
        raise ValueError(f"the server says {stated['remark']!r:.200}")
    restrictions = Restrictions()
    for relation in stated["elements"]:
        tags = {str(key): str(value) for key, value in relation["tags"].items()}
        members = [(str(m["type"]), int(m["ref"]), str(m["role"])) for m in relation["members"]]
        restrictions.add(tags, members)
    return restrictions


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


def _streets(graph: nx.MultiDiGraph, restrictions: Restrictions) -> Streets:
    """Take the pieces of an unsimplified osmnx graph apart."""
    labels = list(graph.nodes)
    index = {label: i for i, label in enumerate(labels)}
    roads: list[Road] = []
    ways: list[int] = []
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
                ways.append(way)
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
    node_ids = np.array(labels, dtype=np.int64)
    pieces = Pieces(
        tails=np.array(tails, dtype=np.int64),
        heads=np.array(heads, dtype=np.int64),
        road=np.array(road, dtype=np.int64),
        backward=np.array(backward, dtype=np.bool_),
    )
    bans = restrictions.bans(pieces, np.array(ways, dtype=np.int64), node_ids)
    ignored = {what: n for what, n in restrictions.left_out.items() if n}
    return Streets(
        node_ids=node_ids,
        lon=np.array([graph.nodes[label]["x"] for label in labels], dtype=np.float64),
        lat=np.array([graph.nodes[label]["y"] for label in labels], dtype=np.float64),
        **pieces._asdict(),
        roads=roads,
        signals=np.array([graph.nodes[label].get("highway") == SIGNALS_TAG for label in labels], dtype=np.bool_),
        bans=bans,
        left_out={CLOSED_WAYS: closed, **ignored},
    )
