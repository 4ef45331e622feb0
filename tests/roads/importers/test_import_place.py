"""Places downloaded from a server on this machine that answers as Nominatim and Overpass do."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote_plus
from xml.etree import ElementTree

import osmnx
import pytest
from road_files import OSM_GRID_BANS, OSM_GRID_SIGNALS, bans_by_label, osm_grid

from routesim.errors import NetworkError
from routesim.roads.network import RoadNetwork

SQUARE = [[6.9, 49.9], [7.1, 49.9], [7.1, 50.1], [6.9, 50.1], [6.9, 49.9]]


def nominatim_answer() -> list[dict[str, Any]]:
    box = {"boundingbox": ["49.9", "50.1", "6.9", "7.1"], "lat": "50.0", "lon": "7.0", "importance": 0.5}
    polygon = {"type": "Polygon", "coordinates": [SQUARE]}
    return [
        {
            "place_id": 1,
            "osm_type": "relation",
            "osm_id": 1,
            "display_name": "Gridtown",
            "geojson": polygon,
            **box,
        }
    ]


def overpass_answer() -> dict[str, Any]:
    """The grid of the other tests, as Overpass would put it."""
    elements: list[dict[str, Any]] = []
    for item in ElementTree.fromstring(osm_grid().encode()):  # noqa: S314 - written by the tests themselves
        tags = {tag.attrib["k"]: tag.attrib["v"] for tag in item.iter("tag")}
        if item.tag == "node":
            place = {"lat": float(item.attrib["lat"]), "lon": float(item.attrib["lon"])}
            elements.append({"type": "node", "id": int(item.attrib["id"]), "tags": tags, **place})
        else:
            nodes = [int(point.attrib["ref"]) for point in item.iter("nd")]
            elements.append({"type": "way", "id": int(item.attrib["id"]), "nodes": nodes, "tags": tags})
    return {"version": 0.6, "elements": elements}


class Town(ThreadingHTTPServer):
    """Answers in turn with what it was given, the last answer again and again, and counts requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.search: list[Any] = [nominatim_answer()]
        self.roads: list[Any] = [overpass_answer()]
        self.bans: list[Any] = [{"version": 0.6, "elements": []}]
        self.asked: list[str] = []
        self.queries: list[str] = []

    @property
    def options(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.server_address[1]}"
        return {"nominatim_url": f"{url}/", "overpass_url": f"{url}/api", "retry_wait_s": 0.0}


class _Handler(BaseHTTPRequestHandler):
    server: Town

    def do_GET(self) -> None:
        self._answer("search", self.server.search)

    def do_POST(self) -> None:
        query = unquote_plus(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.queries.append(query)
        if 'rel["type"="restriction"]' in query:
            self._answer("bans", self.server.bans)
        else:
            self._answer("roads", self.server.roads)

    def _answer(self, kind: str, answers: list[Any]) -> None:
        self.server.asked.append(kind)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, float):
            time.sleep(answer)
            answer = {}
        status, body = (answer, b"busy") if isinstance(answer, int) else (200, answer)
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def town() -> Iterator[Town]:
    with serving() as server:
        yield server


@contextmanager
def serving() -> Iterator[Town]:
    server = Town()
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """osmnx waits a second before each request, out of courtesy to the public servers."""
    monkeypatch.setattr("osmnx._nominatim.time", SimpleNamespace(sleep=lambda _: None))


def test_a_place_is_downloaded_once_and_then_read_from_the_cache(town: Town, tmp_path: Path) -> None:
    before = {key: value for key, value in vars(osmnx.settings).items() if not key.startswith("_")}
    resolver = socket.getaddrinfo
    first = RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **town.options)
    assert town.asked == ["search", "roads", "bans"]
    assert "highway" in town.queries[0]
    assert first.name == "Gridtown"
    assert "OpenStreetMap" in first.attribution
    again = RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **town.options)
    assert town.asked == ["search", "roads", "bans"]
    assert [first.labels[i] for i in first.signals.nonzero()[0]] == [OSM_GRID_SIGNALS]
    assert again.equals(first)
    # osmnx is left as it was found.
    after = {key: value for key, value in vars(osmnx.settings).items() if not key.startswith("_")}
    assert after == before
    assert socket.getaddrinfo is resolver
    assert [file.suffix for file in tmp_path.iterdir()] == [".npz"]


def test_a_place_gives_the_network_its_file_gives(town: Town, tmp_path: Path) -> None:
    (tmp_path / "grid.osm").write_text(osm_grid(), encoding="utf-8")
    for options in ({}, {"simplify": False}):
        place = RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **options, **town.options)
        file = RoadNetwork.from_osm(tmp_path / "grid.osm", **options)
        assert set(place.labels) == set(file.labels)
        ends = [
            sorted(zip(n.edges.u, n.edges.v, n.names, n.highways, n.free_flow_s.round(6), n.lanes, strict=True))
            for n in (place, file)
        ]
        assert ends[0] == ends[1]


def test_the_cache_works_offline_and_without_it_the_error_is_clear(tmp_path: Path) -> None:
    with serving() as town:
        options = town.options
        first = RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **options)
    assert RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **options).equals(first)
    with pytest.raises(NetworkError, match=r"cannot download the roads of 'Gridtown' .*there is no copy in"):
        RoadNetwork.from_place("Gridtown", cache_folder=tmp_path / "other", **options)
    with pytest.raises(NetworkError, match="cannot download"):
        RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, refresh=True, **options)
    with pytest.raises(NetworkError, match="cannot download the roads of 'Elsewhere'"):
        RoadNetwork.from_place("Elsewhere", cache_folder=tmp_path, **options)


def test_a_damaged_copy_is_downloaded_again(town: Town, tmp_path: Path) -> None:
    first = RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **town.options)
    copy = next(tmp_path.iterdir())
    copy.write_bytes(copy.read_bytes()[:100])
    assert RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **town.options).equals(first)
    assert town.asked == ["search", "roads", "bans"] * 2


def test_the_cache_folder_follows_the_environment(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTESIM_CACHE", str(tmp_path / "here"))
    RoadNetwork.from_place("Gridtown", **town.options)
    assert len(list((tmp_path / "here").iterdir())) == 1


def test_a_busy_server_is_asked_again(town: Town, tmp_path: Path) -> None:
    town.roads = [429, 504, overpass_answer()]
    assert RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **town.options).n_nodes > 1
    assert town.asked.count("roads") == 3


def test_a_server_that_stays_busy_is_given_up(town: Town, tmp_path: Path) -> None:
    town.roads = [429]
    with pytest.raises(NetworkError, match="the server answered 429, too busy"):
        RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, retries=2, **town.options)
    assert town.asked.count("roads") == 3


def test_a_server_that_does_not_answer_in_time(town: Town, tmp_path: Path) -> None:
    town.roads = [2.0]
    begin = time.monotonic()
    with pytest.raises(NetworkError, match="ReadTimeout"):
        RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, timeout_s=0.3, **town.options)
    assert time.monotonic() - begin < 1.9


@pytest.mark.parametrize(
    "roads",
    [
        b'{"elements": [',
        b"<html>sorry</html>",
        b"",
        b"\xff\xfe\x00",
        500,
        403,
        {"elements": []},
        {"remark": "runtime error: Query timed out"},
        {"elements": "none"},
        {"elements": [{"type": "node"}]},
        {"elements": [{"type": "way", "id": 1, "nodes": [1, 2], "tags": {"highway": "primary"}}]},
        [],
        None,
    ],
)
def test_an_answer_that_is_no_roads(roads: Any, town: Town, tmp_path: Path) -> None:
    town.roads = [roads]
    with pytest.raises(NetworkError, match="roads of 'Gridtown'"):
        RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **town.options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("found", [[], {}, b"{", 500, [{"lat": "1"}]])
def test_an_answer_that_is_no_place(found: Any, town: Town, tmp_path: Path) -> None:
    town.search = [found]
    with pytest.raises(NetworkError, match="cannot download the roads of 'Nowhere'"):
        RoadNetwork.from_place("Nowhere", cache_folder=tmp_path, **town.options)
    assert "roads" not in town.asked


@pytest.mark.parametrize("query", ["", "   ", "x" * 501])
def test_a_place_needs_a_name(query: str) -> None:
    with pytest.raises(NetworkError, match="a place is a text"):
        RoadNetwork.from_place(query)


def restrictions_answer() -> dict[str, Any]:
    """The turn restrictions of the grid, as Overpass would put them."""
    elements = []
    for item in ElementTree.fromstring(osm_grid(bans=True).encode()).iter("relation"):  # noqa: S314 - as above
        members = [{**part.attrib, "ref": int(part.attrib["ref"])} for part in item.iter("member")]
        tags = {tag.attrib["k"]: tag.attrib["v"] for tag in item.iter("tag")}
        elements.append({"type": "relation", "id": int(item.attrib["id"]), "members": members, "tags": tags})
    return {"version": 0.6, "elements": elements}


def test_a_place_has_the_banned_turns_of_its_file(town: Town, tmp_path: Path) -> None:
    town.bans = [429, restrictions_answer()]
    place = RoadNetwork.from_place("Gridtown", cache_folder=tmp_path / "cache", **town.options)
    assert town.asked == ["search", "roads", "bans", "bans"]
    assert "(50.0000000,7.0000000,50.0100000,7.0100000);out body;" in town.queries[-1]
    (tmp_path / "grid.osm").write_text(osm_grid(bans=True), encoding="utf-8")
    file = RoadNetwork.from_osm(tmp_path / "grid.osm")
    assert bans_by_label(place) == bans_by_label(file) == OSM_GRID_BANS
    assert place.bans_known
    assert {what: n for what, n in place.left_out.items() if n} == {what: n for what, n in file.left_out.items() if n}
    assert RoadNetwork.from_place("Gridtown", cache_folder=tmp_path / "cache", **town.options).equals(place)


@pytest.mark.parametrize(
    "bans",
    [
        b"{",
        b"",
        500,
        [],
        None,
        {"elements": "none"},
        {"elements": [{"type": "relation"}]},
        {"elements": [{"tags": {}, "members": [{"type": "way", "ref": "x", "role": "from"}]}]},
        {"elements": [], "remark": "runtime error: Query timed out"},
    ],
)
def test_an_answer_that_is_no_restrictions(bans: Any, town: Town, tmp_path: Path) -> None:
    town.bans = [bans]
    with pytest.raises(NetworkError, match="cannot download the turn restrictions of 'Gridtown'"):
        RoadNetwork.from_place("Gridtown", cache_folder=tmp_path, **town.options)
    assert list(tmp_path.iterdir()) == []
