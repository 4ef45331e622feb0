"""The guard at the door: which hosts may be named, how large a body may be, and what every answer says of itself."""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 18
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# The page loads nothing but what the service sends, sits in nobody's frame and sends no referrer.
_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """ASGI middleware: an unknown Host or a foreign Origin is 400, a body above `most_bytes` 413; all end here.

    The checks of host and origin keep web pages that a browser has open from using a service on the same machine, be
    it by a name of their own that points to it.
    """

    def __init__(self, app: App, hosts: Iterable[str] = LOOPBACK, most_bytes: int = MOST_BYTES) -> None:
        self._app, self._most = app, most_bytes
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        named = headers.get(b"host", b"").decode("latin-1").lower()
        host, origin = _host_of(named), headers.get(b"origin", b"").decode("latin-1").lower()
        if host not in self._hosts:
            await _answer(send_on, 400, f"this service does not answer for host {host[:100]!r}; start it with --name")
            return
        if origin and origin.partition("://")[2] != named:
            await _answer(send_on, 400, f"pages of {origin[:100]!r} may not use this service")
            return
        length = headers.get(b"content-length", b"0")
        body, more = b"", not length.isdigit() or int(length) <= self._most
        too_large = not more
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # the client is gone
            body += message.get("body", b"")
            more = message.get("more_body", False) and len(body) <= self._most
        if too_large or len(body) > self._most:
            await _answer(send_on, 413, f"a body has at most {self._most} bytes", close=True)
            return
        handed = False

        async def receive_again() -> Message:
            nonlocal handed
            if handed:
                return await receive()
            handed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, receive_again, send_on)


def _host_of(header: str) -> str:
    """Return the name in a Host header without its port; addresses of version 6 stand in brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


async def _answer(send: Send, status: int, detail: str, *, close: bool = False) -> None:
    content = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if close:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
