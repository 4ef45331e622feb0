"""The guard: which hosts may be named, who may write, how large a request may be, and what every answer declares."""

import hmac
import json
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 18
MOST_HEAD = 1 << 15
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# The page loads nothing but what the service sends, sits in nobody's frame and sends no referrer.
_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


_READING = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(rb"(?:\[(?P<six>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9](?:[a-z0-9._-]{0,252})))(?::[0-9]{1,5})?")


class Guard:
    """ASGI middleware that answers what may go no further.

    An unknown Host or a foreign Origin is 400, writing without the token 401, a body above `most_bytes` 413, a head
    above `MOST_HEAD` 431. The checks of host and origin keep web pages that a browser has open from using a service on
    the same machine, be it by a name of their own that points to it.
    """

    def __init__(
        self, app: App, hosts: Iterable[str] = LOOPBACK, most_bytes: int = MOST_BYTES, token: str | None = None
    ) -> None:
        self._app, self._most = app, most_bytes
        self._hosts = {host.lower() for host in hosts}
        self._bearer = None if token is None else f"Bearer {token}".encode()

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

        refusal = self._refusal(scope)
        if refusal is not None:
            # The rest of such a request is not read.
            await _answer(send_on, *refusal, close=True)
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

    def _refusal(self, scope: Message) -> tuple[int, str] | None:
        """Return the status and the reason with which a request ends here, None if it may go on."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD:
            return 431, f"the head of a request has at most {MOST_HEAD} bytes"
        named = _all(scope, b"host")
        host = _host_of(named)
        if host is None:
            return 400, "a request names one host: a name or an address, and a port if need be"
        if host not in self._hosts:
            return 400, f"this service does not answer for host {host[:100]!r}; start it with --name"
        for origin in _all(scope, b"origin"):
            if origin.lower().partition(b"://")[2] != named[0].lower():
                return 400, f"pages of {origin[:100].decode('latin-1')!r} may not use this service"
        if self._bearer is not None and scope["method"] not in _READING:
            given = _all(scope, b"authorization")
            if len(given) != 1 or not hmac.compare_digest(given[0], self._bearer):
                return 401, "writing to this service needs its token, as Authorization: Bearer TOKEN"
        return None


def _all(scope: Message, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]


def _host_of(headers: list[bytes]) -> str | None:
    """Return the name in the one Host header without its port, None if there is no such; version 6 has brackets."""
    found = _HOST.fullmatch(headers[0].lower()) if len(headers) == 1 else None
    return None if found is None else (found["six"] or found["name"]).decode()


async def _answer(send: Send, status: int, detail: str, *, close: bool = False) -> None:
    content = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if close:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
