"""Who may see the page, and what a page from elsewhere in the same browser can do: nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import minidsms
from minidsms.connection import Connection
from tests.web.pages import Page

EVERYTHING = ("/", "/static/main.js", "/events", "/api/examples", "/api/answer?query=q", "/export/q")


@pytest.fixture(scope="module")
def db() -> Iterator[Connection]:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM Pos (car INTEGER)")
        yield db


@pytest.fixture(scope="module")
def page(db: Connection) -> Page:
    return Page(db)


def test_the_token_is_exchanged_for_a_strict_cookie_and_leaves_the_address(page: Page) -> None:
    path = page.shown.url.removeprefix(f"http://{page.host}")
    status, headers, _ = page.request("GET", path, cookie=None)
    assert (status, headers["location"]) == (303, "/")
    assert "HttpOnly" in headers["set-cookie"] and "SameSite=Strict" in headers["set-cookie"]
    assert page.shown.guard.token not in headers["set-cookie"]
    assert page.request("GET", "/")[0] == 200


@pytest.mark.parametrize("path", EVERYTHING)
@pytest.mark.parametrize("cookie", [None, "minidsms=x", "a=;;;\x7f"])
def test_nothing_is_shown_without_it(page: Page, path: str, cookie: str | None) -> None:
    assert page.request("GET", path, cookie=cookie)[0] == 403


def test_a_wrong_token_opens_nothing(page: Page) -> None:
    for token in ("", "x", page.shown.guard.token[:-1], page.shown.guard.token + "x", "%ff%00"):
        assert page.request("GET", f"/?token={token}", cookie=None)[0] == 403


def test_a_program_shows_the_token_as_a_bearer(page: Page) -> None:
    given = {"Authorization": f"Bearer {page.shown.guard.token}"}
    assert page.request("GET", "/api/examples", cookie=None, **given)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "127.0.0.1", ""])
def test_a_server_known_by_another_name_answers_nothing(page: Page, host: str) -> None:
    assert page.request("GET", "/", Host=host.format(port=page.shown.port))[0] == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
    ],
)
def test_another_page_changes_nothing_even_with_the_cookie(db: Connection, page: Page, headers: dict[str, str]) -> None:
    status, _, _ = page.request("POST", "/api/run", {"text": "DROP STREAM Pos"}, **headers)
    assert status == 403
    assert "pos" in db.catalog.streams


def test_nothing_is_changed_by_asking(page: Page) -> None:
    for path in ("/api/run", "/api/plan", "/api/feed", "/api/complete"):
        assert page.request("GET", path)[0] == 405


@pytest.mark.parametrize("path", [*EVERYTHING[:2], "/api/examples", "/nothing", "/static/..%2fserver.py"])
def test_every_answer_carries_the_policy(page: Page, path: str) -> None:
    for cookie in ("own", None):
        _, headers, _ = page.request("GET", path, cookie=cookie)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "name", ["..%2fserver.py", "../server.py", "%2e%2e/server.py", "main.py", "x.js", ".", "%00.js"]
)
def test_only_the_pages_own_files_are_served(page: Page, name: str) -> None:
    assert page.request("GET", f"/static/{name}")[0] == 404


def test_it_listens_on_the_loopback_only(page: Page) -> None:
    assert page.shown._socket.getsockname()[0] == "127.0.0.1"


def test_what_is_too_long_or_no_object_is_refused(page: Page) -> None:
    assert page.request("POST", "/api/run", {"text": "x" * 1_100_000})[0] == 413
    assert page.request("POST", "/api/run", [1])[0] == 400
    assert page.request("POST", "/api/run", {"words": "x"})[0] == 400
