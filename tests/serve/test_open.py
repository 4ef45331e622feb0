"""The service in the open: slow and large requests, odd hosts, the token, and pairs that come and go. Real sockets."""

import re
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from servers import Server, client_of, listening

import routesim as rs
from routesim.serve.door import Limits
from routesim.serve.guard import Guard

TOKEN = "a-token-of-this-test-0123456789"  # noqa: S105 - made up
HEAD = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@contextmanager
def connections(address: str, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have sent something and say no more."""
    host, _, port = address.removeprefix("http://").partition(":")
    with ExitStack() as opened:
        held = []
        for _ in range(count):
            one = opened.enter_context(socket.create_connection((host, int(port)), timeout=60))
            one.sendall(sent)
            held.append(one)
        yield held


def rest_of(connection: socket.socket) -> bytes:
    """All that still comes until the service closes the connection; it may close it in the middle of what we send."""
    got = b""
    with suppress(ConnectionError):
        while piece := connection.recv(65536):
            got += piece
    return got


@pytest.mark.parametrize(
    "half",
    [HEAD + b"x-more: ", b"", b"POST /recommend HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n{"],
    ids=["head", "nothing", "body"],
)
def test_many_half_sent_requests_do_not_lock_others_out(tmp_path: Path, half: bytes) -> None:
    with Server(tmp_path) as server, connections(server.address, 2100, half), server.client() as http:
        for _ in range(3):
            assert http.get("/health").status_code == 200
            assert http.post("/recommend", json={}).status_code == 200


@pytest.mark.parametrize(
    "first",
    [
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 20_000))",
        "import sys; sys.modules['httptools'] = None",
        "import sys; sys.modules['httptools'] = sys.modules['uvloop'] = None",
    ],
    ids=["few files", "few files at first", "h11", "h11 and asyncio"],
)
def test_nor_do_they_with_few_files_or_another_parser(tmp_path: Path, first: str) -> None:
    with Server(tmp_path, first=first) as server, connections(server.address, 2100, HEAD), server.client() as http:
        for _ in range(3):
            assert http.post("/recommend", json={}).status_code == 200
        with connections(server.address, 1, HEAD + b"x-large: " + b"x" * 40_000) as (one,):
            assert re.match(rb"HTTP/1\.1 4(31|00)", rest_of(one))


def test_requests_that_do_not_arrive_in_time_are_closed(tmp_path: Path) -> None:
    """Even if a byte comes now and then; a connection that only waits may stay."""
    body = b"POST /recommend HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n{"
    with listening(tmp_path, Limits(arrive_s=1.0)) as address, ExitStack() as opened:
        kept = opened.enter_context(httpx2.Client(base_url=address, timeout=60))
        assert kept.get("/health").status_code == 200
        halves = (HEAD, b"", HEAD + b"\r\n", body)
        dripping, silent, second, unfinished = (
            opened.enter_context(connections(address, 1, half))[0] for half in halves
        )
        assert second.recv(65536).startswith(b"HTTP/1.1 200")
        second.sendall(HEAD)
        for _ in range(200):
            try:
                dripping.sendall(b"x")
                time.sleep(0.1)
            except ConnectionError:
                break
        else:
            raise AssertionError("a head that never ends was waited for")
        assert rest_of(silent).startswith(b"HTTP/1.1 408")
        assert rest_of(second).startswith(b"HTTP/1.1 408")
        assert rest_of(unfinished) == b""
        assert kept.get("/health").status_code == 200


def test_a_full_house_closes_who_waited_longest(tmp_path: Path) -> None:
    with (
        listening(tmp_path, Limits(connections=3)) as address,
        connections(address, 3, HEAD) as held,
        connections(address, 1, HEAD + b"\r\n") as (one,),
    ):
        assert one.recv(65536).startswith(b"HTTP/1.1 200")
        assert rest_of(held[0]) == b""
        held[1].sendall(b"\r\n")
        assert held[1].recv(65536).startswith(b"HTTP/1.1 200")


def test_large_heads_are_refused(tmp_path: Path) -> None:
    with Server(tmp_path) as server, server.client() as http:
        assert http.get("/health", headers={"x-large": "x" * 20_000}).status_code == 200
        for piece in (b"x-large: " + b"x" * 40_000 + b"\r\n\r\n", b"x-many: y\r\n" * 5000 + b"\r\n"):
            with connections(server.address, 1, HEAD + piece) as (one,):
                assert re.match(rb"HTTP/1\.1 4(31|00)", rest_of(one))
        # 100 MB as far as they are taken, also behind a request that is being answered.
        for before in (b"", HEAD + b"\r\n"):
            with connections(server.address, 1, before + HEAD + b"x-large: ") as (one,):
                sent = 0
                with suppress(ConnectionError):
                    while sent < 100 << 20:
                        sent += one.send(b"x" * 65536)
                assert sent < 50 << 20
        assert http.get("/health").status_code == 200


async def statuses(headers: list[tuple[bytes, bytes]], method: str = "GET", token: str | None = None) -> int:
    """The status with which the guard answers, 200 if the request goes on."""
    seen: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
        await send({"type": "http.response.start", "status": 200})

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if "status" in message:
            seen.append(message["status"])

    guard = Guard(app, hosts=("127.0.0.1", "::1", "roads.example"), token=token)
    await guard({"type": "http", "method": method, "headers": headers}, receive, send)
    return seen[0]


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        ([b"127.0.0.1"], 200),
        ([b"roads.example:8000"], 200),
        ([b"[::1]:8000"], 200),
        ([], 400),
        ([b"127.0.0.1", b"127.0.0.1"], 400),
        ([b"evil.example", b"127.0.0.1"], 400),
        ([b"user@127.0.0.1"], 400),
        ([b"127.0.0.1:8000@evil.example"], 400),
        ([b"127.0.0.1:evil"], 400),
        ([b"127.0.0.1:123456"], 400),
        ([b"127.0.0.1 "], 400),
        ([b"127.0.0.1/x"], 400),
        ([b"127.0.0.1,evil.example"], 400),
        ([b"[::1]evil.example"], 400),
        ([b"[::1"], 400),
        ([b"127.0.0.1\x00"], 400),
        ([b"127.0.0.1\n"], 400),
        ([b"roads.example\xe9"], 400),
    ],
)
def test_there_is_one_host_and_it_is_plain(hosts: list[bytes], status: int) -> None:
    import asyncio

    assert asyncio.run(statuses([(b"host", host) for host in hosts])) == status


def test_two_hosts_in_a_real_request_are_refused(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        for more in (b"host: evil.example\r\n", b"host: 127.0.0.1\r\n"):
            with connections(server.address, 1, HEAD + more + b"\r\n") as (one,):
                assert one.recv(65536).startswith(b"HTTP/1.1 400")


def test_writing_needs_the_token_and_reading_does_not(tmp_path: Path) -> None:
    with client_of(tmp_path, token=TOKEN) as client:
        for path in ("/", "/state", "/loads", "/health", "/openapi.json", "/page/page.js", "/page/roads.json"):
            assert client.get(path).status_code == 200
        for path in ("/recommend", "/observe"):
            for given in (None, "", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer é"):
                header = {} if given is None else {"authorization": given.encode()}
                answer = client.post(path, json={}, headers=header)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.json() == {
                    "detail": "writing to this service needs its token, as Authorization: Bearer TOKEN"
                }
        mine = {"authorization": f"Bearer {TOKEN}"}
        made = client.post("/recommend", json={}, headers=mine)
        assert made.status_code == 200
        body = {"decision_id": made.json()["decision_id"], "travel_time_s": 300.0}
        assert client.post("/observe", json=body).status_code == 401
        assert client.post("/observe", json=body, headers=mine).status_code == 200
        assert client.get("/state").json()["recommended"] == 1


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    mine = {"authorization": f"Bearer {TOKEN}"}
    with Server(tmp_path / "file", "helsinki", "--token-file", str(file)) as server, server.client() as http:
        assert TOKEN not in server.said
        assert "writing needs the token" in server.said
        assert (http.post("/recommend").status_code, http.post("/recommend", headers=mine).status_code) == (401, 200)
    monkeypatch.setenv("ROUTESIM_TOKEN", TOKEN)
    with Server(tmp_path / "environment") as server, server.client() as http:
        assert TOKEN not in server.said
        assert (http.post("/recommend").status_code, http.post("/recommend", headers=mine).status_code) == (401, 200)
    monkeypatch.setenv("ROUTESIM_TOKEN", "secret")
    with pytest.raises(AssertionError, match="routesim: a token has 16 to 256 printable") as caught:
        Server(tmp_path / "short")
    assert "secret" not in str(caught.value)
    with pytest.raises(AssertionError, match="routesim: cannot read the token from"):
        Server(tmp_path / "short", "helsinki", "--token-file", str(tmp_path / "none"))


def recommend(client: Any, trip: Any = None, **more: Any) -> Any:
    answer = client.post("/recommend", json={"trip": trip, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def trips(count: int) -> list[dict[str, Any]]:
    labels = rs.load_city("helsinki").labels
    return [{"origin": labels[3 + number], "destination": labels[50 + number]} for number in range(count)]


def test_pairs_that_were_used_once_make_room(tmp_path: Path) -> None:
    regular, *others = trips(6)
    with client_of(tmp_path, most_pairs=3) as client:
        desk = client.app.state.service.desk  # type: ignore[attr-defined]
        for _ in range(2):
            recommend(client, regular)
        ends = list(desk.pairs)[-1]
        first = recommend(client, others[0], request_id="first")
        for trip in others[1:]:
            recommend(client, trip)
        assert len(desk.pairs) == client.get("/state").json()["pairs"] == 3
        assert {client.app.state.service.served.ends, ends} < set(desk.pairs)  # type: ignore[attr-defined]
        # What was given to a pair that is gone holds: the same request, and its observation, which teaches the edges.
        assert recommend(client, others[0], request_id="first") == first
        assert len(desk.pairs) == 3
        before = desk.visits.sum()
        seen = {"decision_id": first["decision_id"], "travel_time_s": 300.0}
        assert client.post("/observe", json=seen).json()["repeated"] is False
        assert client.post("/observe", json=seen).json()["repeated"] is True
        assert desk.visits.sum() == before + len(first["route"]["edges"])
        times = [1.0] * (len(first["route"]["edges"]) + 1)
        answer = client.post("/observe", json={"decision_id": first["decision_id"], "edge_times_s": times})
        assert answer.status_code == 409


@pytest.mark.parametrize("snapshot_rows", [4, 10**6])
def test_a_restart_keeps_the_pairs_that_were_kept(tmp_path: Path, snapshot_rows: int) -> None:
    """As without it, with or without a snapshot, be it under another limit of pairs."""
    asked = trips(5)

    def talk(client: Any, first: int, last: int) -> list[Any]:
        answers = []
        for number in range(first, last):
            answers.append(recommend(client, asked[number * number % 5]))
            seen = {"decision_id": answers[-1 - min(3, number - first)]["decision_id"]}
            assert client.post("/observe", json={**seen, "travel_time_s": 200.0 + number}).status_code in (200, 409)
        return [(one["route"]["number"], one["expected_time_s"]) for one in answers]

    with client_of(tmp_path / "whole", most_pairs=3) as client:
        whole = talk(client, 0, 12) + talk(client, 12, 24)
        pairs = list(client.app.state.service.desk.pairs)  # type: ignore[attr-defined]
    with client_of(tmp_path / "parts", most_pairs=3, snapshot_rows=snapshot_rows) as client:
        parts = talk(client, 0, 12)
    with closing(sqlite3.connect(tmp_path / "parts" / "journal.sqlite")) as file:
        file.execute("delete from snapshots where number = (select max(number) from snapshots)")
        file.commit()
    with client_of(tmp_path / "parts", most_pairs=3, snapshot_rows=snapshot_rows) as client:
        parts += talk(client, 12, 24)
        assert list(client.app.state.service.desk.pairs) == pairs  # type: ignore[attr-defined]
    assert parts == whole
    with client_of(tmp_path / "parts", most_pairs=2) as client:
        recommend(client, trips(6)[-1])
        assert client.get("/state").json()["pairs"] == 2


def test_a_damaged_row_is_not_answered_from(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        for number in range(3):
            recommend(client, request_id=f"r{number}")
        with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as file:
            file.execute("update decisions set expected_s = 1.0 where request = 'r1'")
            file.commit()
        answer = client.post("/recommend", json={"request_id": "r1"})
        assert answer.status_code == 503
        assert "routesim" not in answer.text
        assert recommend(client, request_id="r2")
    with (
        pytest.raises(rs.RoutesimError, match="table decisions, row 2: its checksum does not fit"),
        client_of(tmp_path),
    ):
        pass


def test_httpx_can_be_used_beside_raw_sockets(tmp_path: Path) -> None:
    """Many ordinary connections at once, each kept open, are all served."""
    with Server(tmp_path) as server, ExitStack() as opened:
        clients = [opened.enter_context(httpx2.Client(base_url=server.address, timeout=60)) for _ in range(50)]
        for _ in range(2):
            assert all(one.get("/health").status_code == 200 for one in clients)
