"""The process that SUMO runs in, as its engine sees it: started with a net, asked, and ended with all of its files."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
import zlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Floats, Ints
from routesim.errors import InputError, SimulatorError
from routesim.roads.importers.sumo import read_sumo
from routesim.roads.importers.sumo_export import NET, find_netconvert, to_sumo
from routesim.roads.network import RoadNetwork
from routesim.traffic.engines import sumo_worker
from routesim.traffic.engines.sumo_worker import receive, send

_NET_LIMIT = 2**40  # bytes: the net is our own


class Net(NamedTuple):
    """A net of SUMO's, compressed, and the pairs of edges that it connects."""

    text: bytes
    connections: Ints


_nets: "weakref.WeakKeyDictionary[RoadNetwork, Net]" = weakref.WeakKeyDictionary()


def check_installed() -> None:
    """Refuse to go on without the extra."""
    if find_spec("libsumo") is None:
        raise InputError("SUMO is an extra of routesim and is not installed: pip install 'routesim[sumo]'")
    find_netconvert()


def net_of(network: RoadNetwork) -> Net:
    """Return the net of some roads, made once as long as they are in use."""
    if network not in _nets:
        folder = tempfile.mkdtemp(prefix="routesim-sumo-")
        try:
            file = to_sumo(network, Path(folder) / "net")
            net = read_sumo(file, max_bytes=_NET_LIMIT)
            ids = np.array([int(key) for key in net.ids], dtype=np.int64)
            _nets[network] = Net(zlib.compress(file.read_bytes(), 1), ids[net.connections])
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return _nets[network]


class SumoProcess:
    """A running SUMO. It ends with `close`, with the program, or when nobody uses it any more."""

    def __init__(self, net: Net, options: list[str], words: Mapping[str, Any], free_flow_s: Floats) -> None:
        """Start it with options of SUMO's command line and `words` for its worker."""
        check_installed()
        self._folder = Path(tempfile.mkdtemp(prefix="routesim-sumo-"))
        try:
            (self._folder / NET).write_bytes(zlib.decompress(net.text))
            _, environment = find_netconvert()
            environment["LIBSUMO_AS_TRACI"] = "quiet"  # no remarks on other packages
            with (self._folder / "said.txt").open("wb") as said:
                # -P: the modules beside the file are none of its own
                self.process = subprocess.Popen(  # noqa: S603 - the program is this Python, the words are ours
                    [sys.executable, "-P", sumo_worker.__file__, str(self._folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    cwd=self._folder,
                    env=environment,
                )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self.close = weakref.finalize(self, _end, self.process, self._folder, os.getpid())
        start = {"command": "start", "options": ["-n", NET, *options], **words}
        self.version = str(self.ask(start, {"free_flow_s": free_flow_s})[0]["version"])

    def ask(
        self, words: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Send a command and return the answer; a SimulatorError where SUMO failed or is gone."""
        if not self.close.alive:
            raise SimulatorError("this run of SUMO has ended; start another")
        try:
            assert self.process.stdin is not None  # noqa: S101 - it is a pipe
            assert self.process.stdout is not None  # noqa: S101
            send(self.process.stdin, words, {name: numbers.copy() for name, numbers in arrays.items()})
            said, found = receive(self.process.stdout)
        except (EOFError, OSError):
            raise SimulatorError(self._last_words()) from None
        if "error" in said:
            last = self._said()
            self.close()
            raise SimulatorError(f"SUMO stopped: {' '.join(said['error'].split())[:400]}{last}")
        return said, {name: np.array(numbers) for name, numbers in found.items()}

    def _last_words(self) -> str:
        code, last = self.process.wait(), self._said()
        self.close()
        try:
            how = f"signal {-code}, {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        except ValueError:
            how = f"exit code {code}"
        return f"the process of SUMO ended in the middle of a run ({how}); start the run again{last}"

    def _said(self) -> str:
        try:
            lines = (self._folder / "said.txt").read_text(errors="replace").split("\n")
        except OSError:
            return ""
        errors = [line for line in lines if line.startswith("Error")] or [line for line in lines if line][-1:]
        return f"; SUMO said: {' '.join(errors)[:300]}" if errors else ""


def _end(process: "subprocess.Popen[bytes]", folder: Path, owner: int) -> None:
    if os.getpid() != owner:  # a fork of the process that uses it
        return
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            try:
                stream.close()
            except OSError:  # what was to be written to it is of no use any more
                continue
    shutil.rmtree(folder, ignore_errors=True)
