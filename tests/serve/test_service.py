"""The service over HTTP: answers, repeats, refusals, restarts. The application runs in this process."""

import json
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from servers import client_of

import routesim as rs
from routesim.serve.journal import Journal
from routesim.serve.rows import seal
from routesim.serve.served import load_served
from routesim.serve.service import Service


def recommend(client: Any, **body: Any) -> Any:
    answer = client.post("/recommend", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def observe(client: Any, decision: Any, seconds: float = 300.0, **more: Any) -> Any:
    return client.post("/observe", json={"decision_id": decision["decision_id"], "travel_time_s": seconds, **more})


def test_a_recommendation_is_a_route_of_the_network(tmp_path: Path) -> None:
    network = rs.load_city("helsinki")
    with client_of(tmp_path) as client:
        told = recommend(client)
        route = told["route"]
        edges = route["edges"]
        assert (network.heads[edges[:-1]] == network.tails[edges[1:]]).all()
        ends = [network.tails[edges[0]], *network.heads[edges]]
        assert route["nodes"] == [network.labels[node] for node in ends]
        assert route["line"]["type"] == "LineString"
        points = route["line"]["coordinates"]
        assert points[0] == pytest.approx([network.lon[ends[0]], network.lat[ends[0]]], abs=1e-5)
        assert points[-1] == pytest.approx([network.lon[ends[-1]], network.lat[ends[-1]]], abs=1e-5)
        assert all(one != two for one, two in pairwise(points))
        assert route["free_flow_s"] == pytest.approx(network.free_flow_s[edges].sum(), abs=1e-3)
        assert client.get("/loads").json()["edges"] == [{"edge": edge, "count": 1} for edge in sorted(edges)]
        state = client.get("/state").json()
        assert (state["recommended"], state["observed"], state["pairs"]) == (1, 0, 1)
        assert [state["origin"], state["destination"]] == [route["nodes"][0], route["nodes"][-1]]
        assert client.get("/health").json() == {"status": "ok"}


def test_any_two_nodes_or_places_can_be_the_ends(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        state = client.get("/state").json()
        back = {"origin": state["destination"], "destination": state["origin"]}
        told = recommend(client, trip=back)
        assert told["route"]["nodes"][0] == state["destination"]
        places = {"origin": {"lon": 24.9522, "lat": 60.1784}, "destination": {"lon": 24.9367, "lat": 60.1642}}
        assert recommend(client, trip=places)["route"]["nodes"][-1] == state["origin"]
        assert client.get("/state").json()["pairs"] == 2
        # Both used the same roads: the counts are those of all recommendations.
        assert max(load["count"] for load in client.get("/loads").json()["edges"]) == 2


def test_a_service_of_one_pair_says_so(tmp_path: Path) -> None:
    labels = rs.load_city("helsinki").labels
    with client_of(tmp_path, most_pairs=1) as client:
        answer = client.post("/recommend", json={"trip": {"origin": labels[4], "destination": labels[60]}})
        assert answer.status_code == 429
        assert "keeps one origin-destination pair" in answer.json()["detail"]
        recommend(client)


@pytest.mark.parametrize(
    ("trip", "words"),
    [
        ({"origin": 1, "destination": 2}, "no node 1"),
        ({"origin": "nowhere", "destination": 2}, "no node 'nowhere'"),
        ({"origin": {"lon": 0.0, "lat": 0.0}, "destination": 2}, "farther from the nearest node"),
        ({"origin": 25291550, "destination": 25291550}, "same node"),
    ],
)
def test_ends_that_are_not_there_are_404(tmp_path: Path, trip: Any, words: str) -> None:
    with client_of(tmp_path) as client:
        for _ in range(2):
            answer = client.post("/recommend", json={"trip": trip})
            assert answer.status_code == 404
            assert words in answer.json()["detail"]
        assert client.get("/state").json()["recommended"] == 0


def test_a_recommendation_asked_for_again_is_the_same_one(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        first = recommend(client, request_id="one")
        recommend(client)
        assert recommend(client, request_id="one") == first
        state = client.get("/state").json()
        assert state["recommended"] == 2
        other = {"origin": state["destination"], "destination": state["origin"]}
        assert client.post("/recommend", json={"request_id": "one", "trip": other}).status_code == 409
        assert client.get("/state").json()["recommended"] == 2
    with client_of(tmp_path) as client:
        assert recommend(client, request_id="one") == first


def test_an_observation_counts_once(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        one, two = recommend(client), recommend(client)
        assert observe(client, one, request_id="a").json()["repeated"] is False
        for again in (observe(client, one, request_id="a"), observe(client, one), observe(client, one, request_id="z")):
            assert again.status_code == 200
            assert again.json()["repeated"] is True
        assert observe(client, one, 301.0, request_id="a").status_code == 409
        assert observe(client, one, 301.0).status_code == 409
        assert observe(client, two, request_id="a").status_code == 409
        by_edge = {"decision_id": one["decision_id"], "edge_times_s": [1.0] * len(one["route"]["edges"])}
        assert client.post("/observe", json=by_edge).status_code == 409
        assert client.get("/state").json()["observed"] == 1
        assert observe(client, two, request_id="b").json()["repeated"] is False
    with client_of(tmp_path) as client:
        assert observe(client, one, request_id="a").json()["repeated"] is True
        assert observe(client, two, 1.0).status_code == 409
        assert client.get("/state").json()["observed"] == 2


def test_edges_are_observed_one_by_one(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        told = recommend(client)
        edges = told["route"]["edges"]
        short = {"decision_id": told["decision_id"], "edge_times_s": [1.0] * (len(edges) - 1)}
        answer = client.post("/observe", json=short)
        assert answer.status_code == 409
        assert f"has {len(edges)} edges" in answer.json()["detail"]
        assert client.post("/observe", json={**short, "edge_times_s": [1.0] * len(edges)}).status_code == 200


def test_decisions_of_nobody_are_404(tmp_path: Path) -> None:
    with client_of(tmp_path / "one") as client, client_of(tmp_path / "two") as other:
        told = recommend(client)
        recommend(other)
        assert observe(other, told).status_code == 404  # the same number, of another state
        assert observe(client, {"decision_id": told["decision_id"][:8] + "-999999999999999999"}).status_code == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/recommend", {"request_id": ""}),
        ("/recommend", {"request_id": "x" * 65}),
        ("/recommend", {"request_id": "a b"}),
        ("/recommend", {"trip": {"origin": 1}}),
        ("/recommend", {"trip": {"origin": {"lon": 200, "lat": 0}, "destination": 1}}),
        ("/recommend", {"trip": {"origin": True, "destination": 1}}),
        ("/recommend", {"trip": {"origin": 2**53 + 2, "destination": 1}}),
        ("/recommend", {"trip": {"origin": 1.5, "destination": 1}}),
        ("/recommend", {"unknown": 1}),
        ("/recommend", []),
        ("/observe", {}),
        ("/observe", {"decision_id": "x", "travel_time_s": 1.0}),
        ("/observe", {"decision_id": "00000000-1", "travel_time_s": 0}),
        ("/observe", {"decision_id": "00000000-1", "travel_time_s": -1.0}),
        ("/observe", {"decision_id": "00000000-1", "travel_time_s": 1e8}),
        ("/observe", {"decision_id": "00000000-1", "travel_time_s": "5"}),
        ("/observe", {"decision_id": "00000000-1", "travel_time_s": 1.0, "edge_times_s": [1.0]}),
        ("/observe", {"decision_id": "00000000-1", "edge_times_s": []}),
        ("/observe", {"decision_id": "00000000-1", "edge_times_s": [1.0] * 10_001}),
    ],
)
def test_what_breaks_the_rules_is_422(tmp_path: Path, path: str, body: Any) -> None:
    with client_of(tmp_path) as client:
        answer = client.post(path, json=body)
        assert answer.status_code == 422
        assert set(answer.json()["detail"][0]) == {"loc", "msg", "type"}
        assert " at 0x" not in answer.text


@pytest.mark.parametrize("text", ['{"travel_time_s": NaN}', "{", "\x00", "[" * 100_000, '{"a": 1e999}', "\ud800"])
def test_nonsense_is_refused_without_a_traceback(tmp_path: Path, text: str) -> None:
    with client_of(tmp_path) as client:
        for path in ("/recommend", "/observe"):
            sent = text.encode("utf-8", "surrogatepass")
            answer = client.post(path, content=sent, headers={"content-type": "application/json"})
            assert answer.status_code in (400, 422), answer.text
            assert "Traceback" not in answer.text
            assert ".py" not in answer.text


def test_a_failure_inside_is_500_and_tells_nothing(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        client.app.state.service.desk.recommend = None  # type: ignore[attr-defined]
        answer = client.post("/recommend")
        assert answer.status_code == 500
        assert answer.json() == {"detail": "the service failed; its own log says why"}


def test_large_bodies_are_413(tmp_path: Path) -> None:
    with client_of(tmp_path, most_bytes=1000) as client:
        header = {"content-type": "application/json"}
        assert client.post("/recommend", content=b" " * 998 + b"{}", headers=header).status_code == 200
        assert client.post("/recommend", content=b" " * 999 + b"{}", headers=header).status_code == 413
        pieces = (b" " * 400 for _ in range(3))
        assert client.post("/recommend", content=pieces, headers=header).status_code == 413


def test_other_hosts_and_pages_of_other_sites_are_refused(tmp_path: Path) -> None:
    with client_of(tmp_path, hosts=("127.0.0.1", "::1", "roads.example")) as client:
        for host, status in {
            "127.0.0.1": 200,
            "127.0.0.1:8000": 200,
            "[::1]:8000": 200,
            "Roads.Example": 200,
            "evil.example": 400,
            "127.0.0.1.evil.example": 400,
            "": 400,
        }.items():
            assert client.get("/health", headers={"host": host}).status_code == status, host
        for origin, status in {
            "http://127.0.0.1": 200,
            "http://evil.example": 400,
            "http://127.0.0.1:3000": 400,
            "null": 400,
        }.items():
            assert client.post("/recommend", headers={"origin": origin}).status_code == status, origin
        answer = client.get("/")
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers


def test_a_form_of_another_site_cannot_pass_as_json(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        answer = client.post("/recommend", content=b"{}", headers={"content-type": "text/plain"})
        assert answer.status_code == 422


GRAPH = """
kind = "city"
title = "Two bridges"
rounds = 10
replications = 1
seed = 0
learners = ["UCB1"]

[city]
origin = "home"
destination = "work"
window = {window}
noise = 0.1
routes = 4
method = "all"
congestion = {{ name = "linear", slope = 1.0 }}
edges = [
  {{ from = "home", to = "north", free_flow_s = 10.0 }},
  {{ from = "north", to = "work", free_flow_s = 10.0 }},
  {{ from = "home", to = "south", free_flow_s = 12.0 }},
  {{ from = "south", to = "work", free_flow_s = 12.0 }},
]
"""


@pytest.mark.parametrize("window", [0, 3])
def test_roads_without_places_are_served_by_their_labels(tmp_path: Path, window: int) -> None:
    scenario = tmp_path / "bridges.toml"
    scenario.write_text(GRAPH.format(window=window))
    with client_of(tmp_path / "state", str(scenario)) as client:
        for _ in range(5):
            told = recommend(client)
            assert observe(client, told, 20.0).status_code == 200
        assert told["route"]["line"]["coordinates"] == []
        assert len(client.get("/loads").json()["edges"]) == (0 if window == 0 else 4)
        trip = {"origin": "north", "destination": "work"}
        assert recommend(client, trip=trip)["route"]["nodes"] == ["north", "work"]
        assert client.post("/recommend", json={"trip": {**trip, "origin": {"lon": 0, "lat": 0}}}).status_code == 404
        assert client.post("/recommend", json={"trip": {"origin": "work", "destination": "home"}}).status_code == 404
        assert client.get("/page/roads.json").json()["nodes"] == []
    with client_of(tmp_path / "state", str(scenario)) as client:
        assert client.get("/state").json()["recommended"] == 6


def test_travellers_are_named(tmp_path: Path) -> None:
    with client_of(tmp_path, "helsinki-travellers") as client:
        told = recommend(client, traveller="calm", conditions=["rain"], request_id="a")
        assert recommend(client, traveller="calm", conditions=["rain", "rain"], request_id="a") == told
        assert client.post("/recommend", json={"traveller": "hurried", "request_id": "a"}).status_code == 409
        for wrong in ({"traveller": "lazy"}, {"conditions": ["snow"]}, {"traveller": "rain"}):
            assert client.post("/recommend", json=wrong).status_code == 404
        assert observe(client, told).status_code == 200
        assert client.get("/state").json()["travellers"] == ["hurried", "calm", "thrifty"]
    with client_of(tmp_path / "plain") as client:
        assert client.post("/recommend", json={"traveller": "calm"}).status_code == 404


def talk(client: Any, first: int, last: int) -> list[Any]:
    """A conversation with late observations; the same numbers always ask the same."""
    told: list[Any] = []
    for number in range(first, last):
        told.append(recommend(client, request_id=f"r{number}"))
        if number % 3 == 2:
            for late in (number, number - 2):
                earlier = recommend(client, request_id=f"r{late}")
                seconds = 200.0 + (late * 37) % 100
                assert observe(client, earlier, seconds, request_id=f"o{late}").status_code == 200
    return told


def routes(told: list[Any]) -> list[tuple[int, float]]:
    return [(one["route"]["number"], one["expected_time_s"]) for one in told]


@pytest.mark.parametrize("snapshot_rows", [7, 10**6])
def test_a_restart_goes_on_as_if_there_had_been_none(tmp_path: Path, snapshot_rows: int) -> None:
    with client_of(tmp_path / "whole") as client:
        whole = talk(client, 0, 90)
        loads = client.get("/loads").json()
    parts = []
    for first in range(0, 90, 30):
        with client_of(tmp_path / "parts", snapshot_rows=snapshot_rows) as client:
            parts += talk(client, first, first + 30)
            last_loads = client.get("/loads").json()
    assert routes(parts) == routes(whole)
    assert last_loads == loads


def test_the_journal_alone_is_enough(tmp_path: Path) -> None:
    """Snapshots only save time: without them, or with broken ones, the answer is the same."""
    answers = []
    for number, spoil in enumerate((None, "delete from snapshots", "update snapshots set content = x'00'")):
        folder = tmp_path / str(number)
        with client_of(folder, snapshot_rows=10) as client:
            talk(client, 0, 60)
        if spoil:
            connection = sqlite3.connect(folder / "journal.sqlite")
            assert connection.execute(spoil).rowcount == 2
            connection.commit()
            connection.close()
        with client_of(folder) as client:
            answers.append(routes(talk(client, 60, 80)))
    assert answers[0] == answers[1] == answers[2]


def test_many_clients_at_once_get_decisions_of_their_own(tmp_path: Path) -> None:
    with client_of(tmp_path) as client, ThreadPoolExecutor(16) as pool:
        # Every id is sent twice at the same time.
        told = list(pool.map(lambda number: recommend(client, request_id=f"r{number // 2}"), range(200)))
        ids = [one["decision_id"] for one in told]
        assert ids[::2] == ids[1::2]
        assert len(set(ids)) == 100
        seen = list(pool.map(lambda one: observe(client, one).json()["repeated"], told))
        assert sorted(seen) == [False] * 100 + [True] * 100
        state = client.get("/state").json()
        assert (state["recommended"], state["observed"]) == (100, 100)


def test_many_clients_that_want_a_new_pair_share_one_search(tmp_path: Path) -> None:
    labels = rs.load_city("helsinki").labels
    trip = {"origin": labels[3], "destination": labels[50]}
    with client_of(tmp_path, most_pairs=2) as client, ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: recommend(client, trip=trip), range(16)))
        assert len({one["decision_id"] for one in told}) == 16
        assert client.get("/state").json()["pairs"] == 2


def test_a_disk_that_fails_is_503_from_then_on(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        recommend(client)
        blocker = sqlite3.connect(tmp_path / "journal.sqlite")
        # A real refusal of SQLite: the number of the next row is taken by somebody else.
        blocker.execute("insert into decisions values (2, null, 0, 1, '', 0, 1.0, x'', x'')")
        blocker.commit()
        blocker.close()
        assert client.post("/recommend").status_code == 503
        assert client.post("/recommend").status_code == 503
        assert client.get("/health").status_code == 503


def test_a_state_folder_has_one_owner_and_one_scenario(tmp_path: Path) -> None:
    with client_of(tmp_path), pytest.raises(rs.RoutesimError, match="another service uses the state"):
        Service(load_served("helsinki"), tmp_path)
    with pytest.raises(rs.RoutesimError, match="the state of another scenario or learner"):
        Service(load_served("helsinki", "UCB1"), tmp_path)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(rs.RoutesimError, match="cannot keep a state"):
        Journal(tmp_path / "file", {})


def test_a_journal_of_other_routes_is_refused(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        recommend(client)
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute("delete from snapshots")
    (token,) = connection.execute("select value from about where name = 'token'").fetchone()
    values = list(connection.execute("select * from decisions").fetchone()[:-1])
    values[5] = 99
    connection.execute("update decisions set action = 99, checksum = ?", (seal(token, "decisions", values),))
    connection.commit()
    connection.close()
    with pytest.raises(rs.RoutesimError, match="not those recommended then"):
        Service(load_served("helsinki"), tmp_path)


def test_the_page_has_all_it_needs(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        page = client.get("/").text
        for part in ("page/leaflet.js", "page/leaflet.css", "page/page.js", "page/page.css"):
            assert part in page
            assert len(client.get(f"/{part}").text) > 500
        assert "http://" not in page
        assert "https://" not in page
        roads = client.get("/page/roads.json").json()
        assert len(roads["lines"]) == rs.load_city("helsinki").n_edges
        assert client.get("/page/secret").status_code == 404
        assert json.loads(client.get("/openapi.json").text)["info"]["title"] == "routesim"
        assert client.get("/docs").status_code == 404


def test_without_the_extra_the_message_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from routesim.cli import main; main()"
    words = [sys.executable, "-c", code, "serve", "helsinki", "--state", str(tmp_path / "state")]
    out = subprocess.run(words, capture_output=True, text=True, check=False)
    assert out.returncode == 2
    assert out.stderr.strip() == "routesim: serving needs uvicorn; install it with: pip install 'routesim[serve]'"
    assert not (tmp_path / "state").exists()
