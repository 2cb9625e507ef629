"""A program that looks at the page of a connection, as a browser would: with its cookie, and JSON."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlencode

import pytest

from minidsms.connection import Connection

for needed in ("starlette", "uvicorn"):
    pytest.importorskip(needed, reason="the page needs minidsms[web]")


_PATIENCE_S = 300
"""An answer may wait for a kernel to be compiled on a machine that does much else."""


class Page:
    """The page of a connection. cookie: what the token was exchanged for."""

    def __init__(self, db: Connection) -> None:
        self.shown = db.ui()
        self.host = f"127.0.0.1:{self.shown.port}"
        _, headers, _ = self.request("GET", self.shown.url.removeprefix(f"http://{self.host}"), cookie=None)
        self.cookie = headers["set-cookie"].partition(";")[0]

    def request(
        self, method: str, path: str, body: Any = None, cookie: str | None = "own", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """status, headers by their small names, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.shown.port, timeout=_PATIENCE_S)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            if cookie is not None:
                given["Cookie"] = self.cookie if cookie == "own" else cookie
            text = None if body is None else json.dumps(body)
            if body is not None:
                given.setdefault("Content-Type", "application/json")
            connection.request(method, path, text, given)
            response = connection.getresponse()
            return response.status, {n.lower(): v for n, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def ask(self, path: str, /, **parameters: Any) -> Any:
        """What GET gives."""
        status, _, body = self.request("GET", f"{path}?{urlencode(parameters)}")
        return _told(status, body)

    def tell(self, path: str, /, **body: Any) -> Any:
        """What POST gives."""
        status, _, answer = self.request("POST", path, body)
        return _told(status, answer)

    def events(self, *wanted: str) -> dict[str, Any]:
        """What a page that has just been opened is told of these parts."""
        connection = http.client.HTTPConnection("127.0.0.1", self.shown.port, timeout=_PATIENCE_S)
        connection.request("GET", "/events", headers={"Cookie": self.cookie})
        response = connection.getresponse()
        told: dict[str, Any] = {}
        while not set(wanted) <= set(told):
            line = response.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
                told[name] = json.loads(response.readline().decode().removeprefix("data: "))
        connection.close()
        return told


def _told(status: int, body: bytes) -> Any:
    given = json.loads(body)
    assert status == 200, given
    return given
