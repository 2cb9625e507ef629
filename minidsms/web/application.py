"""The server's answers: the page's own files, what the observer has seen, as it changes, and what the page may ask for.

Whatever takes the engine's lock runs in a thread of its own, so that a long call of the program delays nobody but who
asked.  Invariant: a request changes something only by POST, with a JSON object.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from minidsms.cql.errors import Error
from minidsms.web.examples import EXAMPLES
from minidsms.web.scheduling import side_by_side
from minidsms.web.wire import text_of

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.web.answers import Answers
    from minidsms.web.feeding import Feeding
    from minidsms.web.observer import Observer
    from minidsms.web.workbench import Workbench

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_MOST_BODY = 1_000_000
_MOST_LISTENERS = 20
_ALIVE_S = 15.0
"""A stream of events that has nothing to say says so after so long: then the server learns that a page has gone."""


class Listeners:
    """The pages that are open, each of which is told when there is news. From any thread."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self) -> asyncio.Event:
        """A page that was opened; what is set when there is news for it."""
        news = asyncio.Event()
        self._waiting[news] = asyncio.get_running_loop()
        return news

    def remove(self, news: asyncio.Event) -> None:
        """It was closed."""
        self._waiting.pop(news, None)

    def tell(self) -> None:
        """There is news."""
        for news, loop in list(self._waiting.items()):
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(news.set)


class Application:
    """See the module. `app` is the ASGI application."""

    def __init__(
        self, db: Connection, observer: Observer, workbench: Workbench, answers: Answers, feeding: Feeding
    ) -> None:
        self._db = db
        self._observer = observer
        self._answers = answers
        self._feeding = feeding
        self.listeners = Listeners()
        self.is_over = False
        asked: dict[str, Callable[[Any], Any]] = {
            "/api/series": self._series,
            "/api/picture": lambda q: observer.picture(float(q["at"])),
            "/api/answer": lambda q: answers.answer(q["query"], int(q.get("rows", "200"))),
            "/api/decisions": lambda q: observer.decisions_before(int(q["before"])),
            "/api/examples": lambda q: [asdict(example) for example in EXAMPLES],
        }
        told: dict[str, Callable[[dict[str, Any]], Any]] = {
            "/api/run": lambda b: workbench.run(str(b["text"])),
            "/api/complete": lambda b: workbench.complete(str(b["before"]), str(b["after"])),
            "/api/plan": lambda b: workbench.change_plan(b["entity"], b["number"], b["action"], b.get("plan")),
            "/api/compare": lambda b: workbench.compare(str(b["query"])),
            "/api/schedulers": lambda b: {"queued": side_by_side(int(b["seed"]))},
            "/api/feed": self._feed,
        }
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/static/{name}", self._file),
                Route("/events", self._events),
                Route("/export/{query:path}", self._export),
                Route("/metrics", self._metrics),
                Route("/health", self._health),
                *(Route(path, self._answering(fn)) for path, fn in asked.items()),
                *(Route(path, self._doing(fn), methods=["POST"]) for path, fn in told.items()),
            ]
        )

    # ----------------------------------------------------------------------------------------------------- files

    async def _page(self, request: Request) -> Response:
        return _file("index.html")

    async def _file(self, request: Request) -> Response:
        return _file(request.path_params["name"])

    async def _export(self, request: Request) -> Response:
        format = "parquet" if request.query_params.get("format") == "parquet" else "csv"
        query = request.path_params["query"]
        try:
            written = await run_in_threadpool(self._answers.exported, query, format)
        except Error as error:
            return _failed(error)
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(query, safe='')}.{format}"}
        return Response(written, media_type="application/octet-stream", headers=headers)

    async def _metrics(self, request: Request) -> Response:
        from minidsms.metrics.prometheus import exposition

        try:
            written, kind = await run_in_threadpool(exposition, self._db)
        except Error as error:
            return _failed(error)
        return Response(written, headers={"content-type": kind})

    async def _health(self, request: Request) -> Response:
        from minidsms.metrics.health import health

        told = await run_in_threadpool(health, self._db)
        return Response(text_of(told), 200 if told["status"] == "ok" else 503, media_type="application/json")

    # ---------------------------------------------------------------------------------------------------- events

    async def _events(self, request: Request) -> Response:
        if len(self.listeners) >= _MOST_LISTENERS:
            return Response("too many pages are open\n", 503)
        return _Events(self.listeners, self._told)

    async def _told(self, news: asyncio.Event) -> AsyncIterator[str]:
        """Every part of what is seen, and from then on those that change."""
        self._observer.wake()
        sent: dict[str, int] = {}
        while not self.is_over:
            for name, part in list(self._observer.parts.items()):
                told = sent.get(name, 0)
                if told != part.version:
                    sent[name] = part.version
                    yield f"event: {name}\ndata: {part.since(told)}\n\n"
            news.clear()
            try:
                await asyncio.wait_for(news.wait(), _ALIVE_S)
            except TimeoutError:
                yield ": nothing new\n\n"

    # ------------------------------------------------------------------------------------------ asking and doing

    def _answering(self, fn: Callable[[Any], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return await _result(lambda: fn(request.query_params))

        return answer

    def _doing(self, fn: Callable[[dict[str, Any]], Any]) -> Callable[[Request], Any]:
        async def do(request: Request) -> Response:
            body = bytearray()
            try:
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > _MOST_BODY:
                        return Response("this is too long\n", 413)
                given = json.loads(body)
            except (ValueError, RecursionError, ClientDisconnect):
                given = None
            if not isinstance(given, dict):
                return Response("a JSON object is expected\n", 400)
            response = await _result(lambda: fn(given))
            if request.scope["path"] != "/api/complete":
                self._observer.wake()
            return response

        return do

    def _series(self, asked: Any) -> dict[str, Any]:
        times, values = self._observer.series(asked["kind"], asked["entity"], asked["property"])
        told = [None if math.isnan(v) else v for v in values]
        return {"times": times, "values": told}

    def _feed(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        speed = body.get("speed")
        speed = None if speed in (None, 0) else float(speed)
        if speed is not None and not 0 < speed < math.inf:
            raise ValueError(f"{speed} is no speed")
        action = body.get("action")
        if action == "declared":
            self._feeding.feed_declared(speed)
        elif action == "file":
            self._feeding.feed_file(str(body["name"]), str(body["path"]), body.get("format") or None, speed)
        else:
            self._feeding.control(int(body["number"]), str(action), speed)
        return self._feeding.told()


class _Events(StreamingResponse):
    """What one of the listeners is told. It is one of them from now until it has gone, told or not."""

    def __init__(self, listeners: Listeners, told: Callable[[asyncio.Event], AsyncIterator[str]]) -> None:
        self._listeners, self._news = listeners, listeners.add()
        super().__init__(told(self._news), media_type="text/event-stream")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See the base."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._listeners.remove(self._news)


async def _result(fn: Callable[[], Any]) -> Response:
    """What a function gives, as JSON."""
    try:
        value = await run_in_threadpool(fn)
    except Error as error:
        return _failed(error)
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return Response(text_of({"error": f"this cannot be asked so: {error}"}), 400, media_type="application/json")
    return Response(text_of(value), media_type="application/json")


def _failed(error: Error) -> Response:
    return Response(text_of({"error": str(error)}), 409, media_type="application/json")


def _file(name: str) -> Response:
    """A file of the page; there are no others."""
    file = resources.files("minidsms.web") / "static" / name
    kind = _TYPES.get(name.rpartition(".")[2])
    if kind is None or "/" in name or "\\" in name or not file.is_file():
        return Response("there is no such file\n", 404)
    return Response(file.read_bytes(), media_type=kind)
