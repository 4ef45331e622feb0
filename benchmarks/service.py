"""Requests a second of `routesim serve`: recommend, every answer checked, from a load generator on the same machine.

    python -m benchmarks.service [--rate 1000] [--seconds 60] [--connections 64] [--observe SHARE]

The service is a process of its own and keeps its journal on the disk, as always. Requests are sent at a steady rate
whether or not answers have come, on connections that stay open; `--rate 0` sends as fast as answers come. With
`--observe 0.5` half of the recommendations are observed too, beyond the rate. Printed: requests a second, errors, the
time an answer took (median, 99 of 100, longest), and processor time of the service.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.side_by_side import note

ROOT = Path(__file__).parent.parent


class Load:
    """What was sent and what came back."""

    def __init__(self, address: str, observe: float) -> None:
        self.host, _, port = address.removeprefix("http://").partition(":")
        self.port, self.observe = int(port), observe
        self.took: list[float] = []
        self.errors: list[str] = []
        self.observed = 0
        self.rng = np.random.default_rng(0)

    async def client(self, due: "asyncio.Queue[float | None]") -> None:
        """Send a request for each time in the queue on one connection; a lateness counts as part of the answer."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            while (asked := await due.get()) is not None:
                status, body = await self._post(reader, writer, "/recommend", b"{}")
                self.took.append(time.perf_counter() - asked)
                if status != 200 or not body.startswith(b'{"decision_id"'):
                    self.errors.append(f"{status}: {body[:200]!r}")
                elif self.rng.random() < self.observe:
                    told = json.loads(body)
                    seen = {"decision_id": told["decision_id"], "travel_time_s": told["expected_time_s"] * 1.05}
                    status, body = await self._post(reader, writer, "/observe", json.dumps(seen).encode())
                    self.observed += 1
                    if status != 200:
                        self.errors.append(f"{status}: {body[:200]!r}")
        except (OSError, ValueError, asyncio.IncompleteReadError) as problem:
            self.errors.append(repr(problem))
        finally:
            writer.close()

    async def _post(self, reader: Any, writer: Any, path: str, body: bytes) -> tuple[int, bytes]:
        head = f"POST {path} HTTP/1.1\r\nhost: {self.host}\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
        if length is None:
            raise ValueError("an answer without a length")
        return int(answer[9:12]), await reader.readexactly(int(length[1]))

    async def steady(self, rate: float, seconds: float, connections: int) -> float:
        """Ask at a rate, or with rate 0 as fast as answers come; return the seconds it took in all."""
        due: asyncio.Queue[float | None] = asyncio.Queue(maxsize=0 if rate else connections)
        clients = [asyncio.create_task(self.client(due)) for _ in range(connections)]
        start = time.perf_counter()
        sent = 0
        while (now := time.perf_counter() - start) < seconds:
            if rate:
                while sent < rate * now:
                    due.put_nowait(start + sent / rate)
                    sent += 1
                await asyncio.sleep(0.001)
            else:
                await due.put(time.perf_counter())
        for _ in clients:
            await due.put(None)
        await asyncio.gather(*clients)
        return time.perf_counter() - start


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--scenario", default="helsinki")
    words.add_argument("--rate", type=float, default=1000.0)
    words.add_argument("--seconds", type=float, default=60.0)
    words.add_argument("--connections", type=int, default=64)
    words.add_argument("--observe", type=float, default=0.0)
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "routesim.cli", "serve", given.scenario, "--port", "0", "--state", folder]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        try:
            address = None
            for line in server.stdout or ():
                found = re.search(r"open (http://\S+)/", line)
                if found:
                    address = found[1]
                    break
            if address is None:
                raise SystemExit("the service did not start")
            load = Load(address, given.observe)
            before = _processor_s(server.pid)
            seconds = asyncio.run(load.steady(given.rate, given.seconds, given.connections))
            used = _processor_s(server.pid) - before
        finally:
            server.terminate()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()
    took = np.sort(load.took) * 1000
    asked = f"{given.rate:,.0f} a second asked for" if given.rate else "as fast as answers come"
    print(f"{given.scenario}, {given.connections} connections, {asked}, {seconds:.1f} s")
    print(f"recommend: {len(took):,} answers, {len(took) / seconds:,.0f} a second; observe: {load.observed:,}")
    note(
        f"`routesim serve`, {seconds:.0f} s of recommend requests",
        f"{len(took) / seconds:,.0f} answers a second, 99 % within {took[int(0.99 * len(took))]:.0f} ms, "
        f"{len(load.errors)} errors",
    )
    print(f"errors: {len(load.errors)} {load.errors[:1]}")
    print(
        f"answer: median {np.median(took):.1f} ms, 99 % {took[int(0.99 * len(took))]:.1f} ms, longest {took[-1]:.0f} ms"
    )
    requests = len(took) + load.observed
    print(f"processor time of the service: {used / seconds:.0%} of one core, {1000 * used / requests:.2f} ms a request")
    print(f"load of the machine in the last minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if load.errors:
        raise SystemExit(1)


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
