"""Killing the service: a real process, ended without warning while clients talk to it, and started again."""

import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from servers import Server, client_of

from routesim.serve.served import load_served


class Client(threading.Thread):
    """Recommends and observes as fast as it can until the service is gone; keeps what was acknowledged, in order."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(daemon=True)
        self.address, self.label = address, name
        self.decisions: dict[str, dict[str, Any]] = {}
        self.observed: dict[str, float] = {}
        self.unsure: dict[str, float] = {}
        self.wrong: list[str] = []
        self.busy = threading.Event()

    def run(self) -> None:
        number = 0
        with httpx2.Client(base_url=self.address, timeout=30.0) as http:
            try:
                while True:
                    request = f"{self.label}-{number}"
                    answer = http.post("/recommend", json={"request_id": request})
                    if answer.status_code != 200:
                        self.wrong.append(answer.text)
                        return
                    told = self.decisions[request] = answer.json()
                    seconds = 200.0 + (number * 37) % 101
                    body = {"decision_id": told["decision_id"], "travel_time_s": seconds, "request_id": request}
                    self.unsure = {request: seconds}
                    answer = http.post("/observe", json=body)
                    if answer.status_code != 200:
                        self.wrong.append(answer.text)
                        return
                    self.observed[request], self.unsure = seconds, {}
                    number += 1
                    if number >= 25:
                        self.busy.set()
            except httpx2.TransportError:
                return  # killed, as it should be


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    clients: list[Client] = []
    for life in range(2):  # killed twice, the second time in a state that had been read again
        with Server(folder) as server:
            clients += [Client(server.address, f"{life}-{number}") for number in range(4)]
            for client in clients[-4:]:
                client.start()
            for client in clients[-4:]:
                assert client.busy.wait(120), client.wrong
            server.kill()  # in the middle of requests: every client has one under way
            for client in clients[-4:]:
                client.join(60)
                assert client.wrong == []

    with Server(folder) as server, server.client() as http:
        state = http.get("/state").json()
        decided = sum(len(client.decisions) for client in clients)
        observed = sum(len(client.observed) for client in clients)
        # What was under way may have reached the disk: one request of each client at most.
        assert observed <= state["observed"] <= observed + len(clients)
        assert decided <= state["recommended"] <= decided + len(clients)
        for client in clients:
            for request, told in client.decisions.items():
                assert http.post("/recommend", json={"request_id": request}).json() == told
            for request, seconds in client.observed.items():
                body = {"decision_id": client.decisions[request]["decision_id"], "travel_time_s": seconds}
                assert http.post("/observe", json=body).json()["repeated"] is True
                assert http.post("/observe", json={**body, "travel_time_s": 1.0}).status_code == 409
            for request, seconds in client.unsure.items():
                body = {"decision_id": client.decisions[request]["decision_id"], "travel_time_s": seconds}
                assert http.post("/observe", json=body).status_code == 200  # sent again, as a client would
        assert http.get("/state").json()["recommended"] == state["recommended"]


@pytest.mark.parametrize("learner", [pytest.param("CARMAB", marks=pytest.mark.slow), "ThompsonSampling"])
def test_after_a_kill_recommendations_go_on_as_without_it(tmp_path: Path, learner: str) -> None:
    def talk(http: Any, first: int, last: int) -> list[tuple[int, float]]:
        told, waiting = [], []
        for number in range(first, last):
            answer = http.post("/recommend", json={"request_id": f"r{number}"}).json()
            told.append((answer["route"]["number"], answer["expected_time_s"]))
            waiting.append((answer["decision_id"], 200.0 + (number * 37) % 101))
            if number % 5 == 4:  # late, and the last first
                for decision, seconds in reversed(waiting):
                    body = {"decision_id": decision, "travel_time_s": seconds}
                    assert http.post("/observe", json=body).status_code == 200
                waiting = []
        return told

    with client_of(tmp_path / "undisturbed", load_served("helsinki", learner)) as http:
        whole = talk(http, 0, 120)
    parts = []
    for first in (0, 40, 80):
        with Server(tmp_path / "killed", "helsinki", "--learner", learner) as server, server.client() as http:
            parts += talk(http, first, first + 40)
            server.kill()
    assert parts == whole


def test_a_second_service_and_a_taken_port_are_said_in_one_line(tmp_path: Path) -> None:
    with Server(tmp_path / "state") as server:
        with pytest.raises(AssertionError, match="routesim: another service uses the state"):
            Server(tmp_path / "state")
        port = server.address.rpartition(":")[2]
        with pytest.raises(AssertionError, match=rf"routesim: cannot listen on 127\.0\.0\.1 port {port}"):
            Server(tmp_path / "other", "helsinki", "--port", port)
        server.process.terminate()
        assert server.process.wait(30) in (0, -15)
    with client_of(tmp_path / "state") as http:
        assert http.app.state.service.journal.snapshots == []  # nothing had happened


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """The system refuses to let any file grow beyond a limit, as a full disk would."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))"
    acknowledged: list[tuple[str, str]] = []
    with Server(tmp_path, first=limit) as server, server.client() as http:
        for number in range(5000):
            made = http.post("/recommend", json={"request_id": f"r{number}"})
            if made.status_code != 200:
                assert made.status_code == 503
                break
            acknowledged.append((f"r{number}", made.json()["decision_id"]))
        else:
            raise AssertionError("the disk never became full")
        assert http.get("/health").status_code == 503
    assert len(acknowledged) > 10
    with client_of(tmp_path) as http:
        for request, decision in acknowledged:
            assert http.post("/recommend", json={"request_id": request}).json()["decision_id"] == decision
        assert len(acknowledged) <= http.get("/state").json()["recommended"] <= len(acknowledged) + 1
