"""Who may see the page: whoever was given its URL, on this machine, and no other page in the same browser.

The URL carries a token, which is exchanged for a cookie, so that it does not stay in the address. A page from elsewhere
cannot use the cookie (SameSite=Strict), cannot write (Origin), and cannot reach the server under a name of its own
(Host).  Invariant: every answer carries the content security policy.  docs/visualizer.md, docs/security.md.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Scripts and styles are the server's own files; no text becomes a script or markup."""
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_SAFE_METHODS = ("GET", "HEAD")


class Guard:
    """An ASGI application before another, which is asked only what is allowed. port: of the server."""

    def __init__(self, inner: Application, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        self._session = secrets.token_urlsafe(24)
        self._inner = inner
        self._cookie = f"minidsms_{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request pass, or refuse it."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if host not in self._hosts:
            await _refuse(send, 400, "this server is known by the name of this machine alone")
            return
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and given and _is_same(given, self.token):
            cookie = f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"
            await _answer(send, 303, b"", [(b"location", b"/"), (b"set-cookie", cookie.encode())])
        elif not self._is_known(headers):
            await _refuse(send, 403, "open the URL that minidsms has printed: it carries a token")
        elif scope["method"] not in _SAFE_METHODS and not _is_own(headers, host):
            await _refuse(send, 403, "only the page itself may do this")
        else:
            await self._inner(scope, receive, _with_headers(send))

    def _is_known(self, headers: MutableMapping[str, str]) -> bool:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            morsel = None
        if morsel is not None and _is_same(morsel.value, self._session):
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and _is_same(token, self.token)


def _is_same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def _is_own(headers: MutableMapping[str, str], host: str) -> bool:
    """The request comes from a script of the page, or from a program; a form elsewhere can send no JSON unasked."""
    origin = headers.get("origin")
    return (
        (origin is None or origin == f"http://{host}")
        and headers.get("sec-fetch-site", "same-origin") == "same-origin"
        and headers.get("content-type", "").partition(";")[0].strip() == "application/json"
    )


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in _HEADERS}
            message["headers"] = [*_HEADERS, *((n, v) for n, v in message["headers"] if n.lower() not in own)]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, why: str) -> None:
    """Say so, and hang up: who may not ask does not stay connected."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await _answer(send, status, f"{why}\n".encode(), headers)


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": body})
