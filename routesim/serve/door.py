"""The door: connections that do not say what they want in time are closed, and make room for those that do.

uvicorn has no limit on the time that a request may take to arrive, and counts connections that wait with those that
are served. A door is its protocol with both: a request arrives within seconds or its connection is closed, its head has
a limited size, and where there are too many connections the one that has waited longest goes.
"""

import asyncio
from typing import Any, NamedTuple

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Http
except ImportError:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Http  # type: ignore[assignment]

MOST_CONNECTIONS = 2048
_SPARE_FILES = 128  # for the journal, for connections on their way out, and for all else
_SWEEP_S = 0.5


class Limits(NamedTuple):
    """How many connections there may be, how long a request may take to arrive and to be answered, how large it is."""

    connections: int = MOST_CONNECTIONS
    arrive_s: float = 10.0
    answer_s: float = 300.0
    head_bytes: int = 1 << 15
    ahead_bytes: int = 1 << 20


class _Door(_Http):
    limits: Limits
    open: "dict[_Door, None]"  # those that have been here longest first
    sweeping: bool

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let a connection in, and close another one if there are too many."""
        super().connection_made(transport)
        self._since, self._bytes, self._counted = self.loop.time(), 0, self.cycle
        self.open[self] = None
        if not type(self).sweeping:
            type(self).sweeping = True
            self.loop.call_later(_SWEEP_S, self._sweep)
        if len(self.open) > self.limits.connections:
            next((one for one in self.open if one.waits), self)._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self.open.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request, of a limited size if it is that of a head."""
        if self.is_idle:
            self._since = self.loop.time()
        self._bytes += len(data)
        super().data_received(data)
        if self.cycle is not self._counted:  # the head of another request has arrived
            self._counted, self._bytes, self._since = self.cycle, 0, self.loop.time()
        most = self.limits.head_bytes if self._in_head else self.limits.ahead_bytes
        if self._bytes > most and not self.transport.is_closing():
            self._end(b"431 Request Header Fields Too Large" if self._in_head else b"")

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._bytes = 0
        super().on_response_complete()

    @property
    def _in_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_idle(self) -> bool:
        """Has the last request been answered, and nothing of another one come?"""
        return self.cycle is not None and self.cycle.response_complete and not self._bytes

    @property
    def waits(self) -> bool:
        """Is there no request that has arrived in full and waits for its answer?"""
        return self._in_head or bool(self.cycle.more_body)

    def _sweep(self) -> None:
        now = self.loop.time()
        for one in list(self.open):
            if not one.is_idle and now - one._since > (self.limits.arrive_s if one.waits else self.limits.answer_s):
                one._end(b"408 Request Timeout" if one._in_head else b"")
        type(self).sweeping = bool(self.open)
        if self.open:
            self.loop.call_later(_SWEEP_S, self._sweep)

    def _end(self, answer: bytes = b"") -> None:
        """Close the connection, with a word if none is under way."""
        self.open.pop(self, None)
        if self.transport.is_closing():
            return
        if answer:
            self.transport.write(b"HTTP/1.1 " + answer + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()
        else:
            self.transport.abort()


def make_door(limits: Limits) -> Any:
    """Return a protocol class for one server of uvicorn."""
    return type("Door", (_Door,), {"limits": limits, "open": {}, "sweeping": False})


def fitting(connections: int = MOST_CONNECTIONS) -> tuple[int, int]:
    """Return how many connections may be open and how many may wait outside, as the system's limit of files allows."""
    waiting = connections // 2  # all of which may come in at once, before any other can be closed
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return connections, waiting
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + waiting + _SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections, waiting
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    left = max(3, allowed - min(_SPARE_FILES, allowed // 4))
    return min(connections, left * 2 // 3), min(waiting, left // 3)
