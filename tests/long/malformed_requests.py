"""`python -m tests.long.malformed_requests --cases N --seed S`: requests to the page that no page would send.

A request that is well-formed is changed in some places: its path, its parameters, its headers, values of its body and
their bytes, and when the client goes away. It is answered or refused, never by a status of 500, a traceback, or an
answer without the content security policy; and behind all of them the connection answers, and so does its page.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import ClientDisconnect

import minidsms
from minidsms.connection import Connection
from minidsms.web.server import Visualizer

_FILTERED = "CREATE QUERY filtered AS SELECT ISTREAM(k, t) FROM S WHERE k > 1 AND t <> 'x'"
_ASKED: dict[str, dict[str, str]] = {
    "/": {"token": "x"},
    "/static/main.js": {},
    "/events": {},
    "/export/counts": {"format": "parquet"},
    "/export/filtered": {"format": "csv"},
    "/metrics": {},
    "/health": {},
    "/api/series": {"kind": "query", "entity": "counts", "property": "results"},
    "/api/picture": {"at": "1.5"},
    "/api/answer": {"query": "counts", "rows": "20"},
    "/api/decisions": {"before": "3"},
    "/api/examples": {},
}
_TOLD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/api/run", {"text": "SELECT k, COUNT(*) FROM S [RANGE 5] GROUP BY k; SHOW QUERIES"}),
    ("/api/run", {"text": "INSERT INTO S VALUES (1, 'a'), (2, NULL)"}),
    ("/api/run", {"text": f"DROP QUERY filtered; {_FILTERED}; SET batch_size = 7"}),
    ("/api/complete", {"before": "SELECT k FROM S WH", "after": " k = 1"}),
    ("/api/plan", {"entity": "filtered.Select", "number": 0, "action": "force", "plan": [1, 0]}),
    ("/api/plan", {"entity": "filtered.Select", "number": 0, "action": "another"}),
    ("/api/compare", {"query": "filtered"}),
    ("/api/feed", {"action": "declared", "speed": 10}),
    ("/api/feed", {"action": "file", "name": "S", "path": "FOLDER/in.csv", "format": "csv", "speed": 0}),
    ("/api/feed", {"action": "pause", "number": 1}),
    ("/api/feed", {"action": "speed", "number": 1, "speed": 2.5}),
)
_ODD_TEXTS = (
    "",
    "\0",
    "\ud800",
    "a\r\nSet-Cookie: x",
    "..",
    "%",
    "nan",
    "-1e999",
    "9" * 400,
    "é💥",
    "(" * 3000,
    "x" * 9000,
)
_ODD_VALUES: tuple[Any, ...] = (
    *_ODD_TEXTS, None, True, -1, 2**63, 10**400, 1e308, float("inf"), float("nan"), [], {}, [[]], [None, 0], {"a": [1]},
)  # fmt: skip
_GONE = "the client has gone"
_NESTED = b"[" * 200_000


@contextlib.contextmanager
def page() -> Iterator[tuple[Connection, Visualizer]]:
    """A connection that lets nobody out of a folder, and its page."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/in.csv", "w", encoding="utf-8") as file:
            file.write("k,t\n1,a\n2,b\n")
        with minidsms.connect(safe=True, allowed_paths=[folder]) as db:
            db.execute("CREATE STREAM S (k INTEGER, t TEXT); CREATE STREAM Own (k INTEGER)")
            db.query("SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="counts")
            db.execute(_FILTERED)
            db.push("S", [(1, "a"), (2, "b"), (3, None)], ts=[1, 2, 3])
            yield db, db.ui()


class Client:
    """Sends requests to a page, straight to its application. answered: how often by each status."""

    def __init__(self, shown: Visualizer, rng: Random) -> None:
        self.answered: Counter[int] = Counter()
        self._guard = shown.guard
        self._host = f"127.0.0.1:{shown.port}".encode()
        self._rng = rng

    async def send(self) -> None:
        """One request, malformed somewhere; AssertionError where it is not answered as it must be."""
        scope, messages, sends = self._request()
        answer: list[Any] = []

        async def receive() -> Any:
            if messages:
                return messages.pop(0)
            await asyncio.sleep(0.05)
            return {"type": "http.disconnect"}

        async def take(message: Any) -> None:
            if len(answer) >= sends:
                raise OSError(_GONE)
            answer.append(message)

        what = f"{scope['method']} {scope['path'][:100]!r}?{scope['query_string'][:100]!r} {scope['headers']}"
        try:
            await asyncio.wait_for(self._guard(scope, receive, take), 0.2 if scope["path"] == "/events" else 60)
        except Exception as error:
            is_expected = isinstance(error, TimeoutError | ClientDisconnect) or str(error) == _GONE
            assert is_expected, f"{what}: {type(error).__name__}: {error}"
        if not answer:
            return
        status, headers = answer[0]["status"], dict(answer[0]["headers"])
        body = b"".join(part.get("body", b"") for part in answer[1:])
        assert status < 500 or (status == 503 and scope["path"] in ("/health", "/events")), f"{what}: {status}"
        assert b"content-security-policy" in headers, f"{what}: no policy"
        assert b"Traceback" not in body and b'File "/' not in body, f"{what}: a traceback"
        self.answered[status] += 1

    def _request(self) -> tuple[dict[str, Any], list[Any], int]:
        rng = self._rng
        headers = [(b"host", self._host), (b"authorization", b"Bearer " + self._guard.token.encode())]
        body, method = b"", "GET"
        if rng.random() < 0.6:
            path, told = rng.choice(_TOLD)
            method, told = "POST", dict(told)
            for _ in range(rng.choice((0, 1, 1, 2))):
                self._change(told, _ODD_VALUES)
            body = json.dumps(told, ensure_ascii=rng.random() < 0.8).encode("utf-8", "surrogatepass")
            body = self._damaged(body) if rng.random() < 0.2 else body
            headers.append((b"content-type", b"application/json"))
            query = ""
        else:
            path = rng.choice(list(_ASKED))
            asked: dict[str, Any] = dict(_ASKED[path])
            for _ in range(rng.choice((0, 1, 1, 2))):
                self._change(asked, _ODD_TEXTS)
            query = urlencode(asked, errors="surrogatepass")
        if rng.random() < 0.1:
            path = rng.choice(
                (path + rng.choice(_ODD_TEXTS), rng.choice(_ODD_TEXTS), f"/static/{rng.choice(_ODD_TEXTS)}")
            )
        if rng.random() < 0.1:
            query += "&" + "".join(chr(rng.randrange(33, 127)) for _ in range(20)) + quote(rng.randbytes(20))
        if rng.random() < 0.1:
            at = rng.randrange(len(headers))
            headers[at] = headers[at][0], rng.choice((b"", bytes(range(256)), headers[at][1] * 50, b"a=b;;;c=\xff"))
        if rng.random() < 0.1:
            headers.append((rng.choice((b"cookie", b"origin", b"sec-fetch-site", b"x")), rng.randbytes(20)))
        if rng.random() < 0.05:
            method = rng.choice(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "\xff", ""))
        cut = rng.randrange(len(body) + 1)
        messages: list[Any] = [{"type": "http.request", "body": body[:cut], "more_body": True}]
        if rng.random() < 0.95:  # else the client goes away amidst its body
            messages.append({"type": "http.request", "body": body[cut:], "more_body": False})
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": path, "raw_path": quote(path, errors="surrogatepass").encode(),
            "query_string": query.encode("latin-1", "replace"), "root_path": "", "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
        }  # fmt: skip
        return scope, messages, rng.choice((0, 1, 2)) if rng.random() < 0.05 else 1000

    def _change(self, given: dict[str, Any], odd: Sequence[Any]) -> None:
        """Another value at one of its names, or none, or a name that nobody expects."""
        rng = self._rng
        name = rng.choice([*given, "more"])
        if rng.random() < 0.15:
            given.pop(name, None)
        elif isinstance(given.get(name), str) and rng.random() < 0.4:
            text = given[name]
            at = rng.randrange(len(text) + 1)
            given[name] = (
                text[:at] + rng.choice((*_ODD_TEXTS[:10], ";", "'", "[", "SELECT")) + text[at + rng.randrange(3) :]
            )
        else:
            given[name] = rng.choice(odd)

    def _damaged(self, body: bytes) -> bytes:
        rng = self._rng
        at = rng.randrange(len(body))
        return rng.choice(
            (
                b"",
                body[:at],
                body[:at] + rng.randbytes(3) + body[at:],
                _NESTED,
                b"[" + body + b"]",
                body + b" " * 1_000_000,
            )
        )


def break_off(shown: Visualizer, rng: Random) -> None:
    """Connect, send some bytes that may begin like a request, and go away, at times without reading the answer."""
    token = shown.guard.token
    whole = (
        f"POST /api/run HTTP/1.1\r\nHost: 127.0.0.1:{shown.port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 40\r\n\r\n"
    ).encode() + b'{"text": "SHOW QUERIES"}'.ljust(40)
    sent = rng.choice(
        (
            whole[: rng.randrange(len(whole))],
            whole.replace(b"40", rng.choice((b"-1", b"x", b"99999999999999999999", b"3")), 1),
            whole.replace(b"HTTP/1.1", rng.choice((b"HTTP/9.9", b"", b"\0"))),
            whole.replace(b"\r\n\r\n", b"\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"),
            whole * 5,
            rng.randbytes(500),
            b"GET /events HTTP/1.1\r\n" + whole.partition(b"\r\n")[2],
        )
    )
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", shown.port), 10) as client:
        client.sendall(sent)
        if rng.random() < 0.5:
            client.settimeout(0.05)
            client.recv(100)


def run(cases: int, seed: int, breaks: int) -> Counter[int]:
    """Send so many requests to one page, and break off so many; how often each status was the answer."""
    rng = Random(seed)
    with page() as (db, shown):
        client = Client(shown, rng)

        async def send_all() -> None:
            for _ in range(cases):
                await client.send()

        asyncio.run(send_all())
        for _ in range(breaks):
            break_off(shown, rng)
        # The connection answers, and so does the page, by its own thread.
        query = db.query("SELECT k FROM Own")
        db.push("Own", (7,), ts=10**6)
        db.advance(10**6, "Own")
        assert [change.row for change in query.fetch()] == [(7,)], "the connection does not answer"
        with socket.create_connection(("127.0.0.1", shown.port), 60) as last:
            ask = (
                f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{shown.port}\r\nAuthorization: Bearer {shown.guard.token}\r\n"
            )
            last.sendall(f"{ask}Connection: close\r\n\r\n".encode())
            assert last.recv(1000).startswith((b"HTTP/1.1 200", b"HTTP/1.1 503")), "the page does not answer"
    return client.answered


def main(arguments: Sequence[str] | None = None) -> int:
    """Send requests; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.malformed_requests", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    total: Counter[int] = Counter()
    for part in range(max(1, options.cases // 500)):
        total += run(min(500, options.cases), options.seed * 1_000_003 + part, 50)
    print(f"{total.total()} requests answered, by status: {dict(sorted(total.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
