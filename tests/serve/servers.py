"""Services for tests: in this process, and as processes of their own that can be killed."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from fastapi.testclient import TestClient

from routesim.serve.app import make_app
from routesim.serve.door import Limits, make_door
from routesim.serve.served import Served, load_served
from routesim.serve.service import Service

ROOT = Path(__file__).parent.parent.parent
HOST = "http://127.0.0.1"


@contextmanager
def client_of(folder: Path, served: Served | str = "helsinki", **options: Any) -> Iterator[TestClient]:
    """A client of a service in this process; leaving it closes the service."""
    app_options = {name: options.pop(name) for name in ("most_bytes", "hosts", "token") if name in options}
    service = Service(load_served(served) if isinstance(served, str) else served, folder, **options)
    app = make_app(service, **app_options)
    app.state.service = service
    with TestClient(app, base_url=HOST, raise_server_exceptions=False) as client:
        yield client


@contextmanager
def listening(folder: Path, limits: Limits) -> Iterator[str]:
    """A service on a free port with limits of its own, in a thread; gives its address."""
    service = Service(load_served("helsinki"), folder)
    config = uvicorn.Config(make_app(service), port=0, log_level="critical", http=make_door(limits), ws="none")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    socket.listen()  # who comes before the thread is ready waits
    thread = threading.Thread(target=server.run, args=([socket],))
    thread.start()
    try:
        yield f"{HOST}:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        socket.close()


class Server:
    """A real `routesim serve` on a free port of this machine."""

    def __init__(self, folder: Path, scenario: str = "helsinki", *words: str, first: str = "pass") -> None:
        """Start it, in a process that does something else first."""
        code = f"{first}; from routesim.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", scenario, "--port", "0", "--state", str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            found = re.search(r"open (http://\S+)/", line)
            if found:
                self.address = found[1]
                return
        self.kill()
        raise AssertionError(f"the service did not start: {self.said}")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.address, timeout=60.0)

    def kill(self) -> None:
        """End the process as a power cut would: it gets no chance to write anything."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
