"""What notebooks show, and `async for`. docs/notebooks.md."""

from __future__ import annotations

import asyncio
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.answers.in_hand import Loop
from minidsms.cql.errors import QueryError

NASTY = "<script>alert('x')</script>&\"\x1b[31m\u202e"


@pytest.fixture
def db() -> minidsms.Connection:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k TEXT, v INTEGER)")
    return db


def read(html: str) -> ElementTree.Element:
    """The piece of HTML, which must be well formed."""
    return ElementTree.fromstring(f"<div>{html}</div>")


def cells(html: str) -> list[list[str]]:
    return [[cell.text or "" for cell in row] for row in read(html).iter("tr")]


def test_a_relation_shows_its_rows_and_a_stream_what_waits(db: minidsms.Connection) -> None:
    counts = db.query("SELECT k, COUNT(*) AS n FROM S [RANGE 10] GROUP BY k", name="counts")
    new = db.query("SELECT v FROM S", name="new")
    db.push("S", [("b", 1), ("a", 2), ("a", None)], ts=[1, 2, 3])
    db.advance(3)
    assert cells(counts._repr_html_()) == [["k", "n"], ["a", "2"], ["b", "1"]]
    assert cells(new._repr_html_()) == [["ts", "v"], ["1", "1"], ["2", "2"], ["3", "NULL"]]
    assert len(new.fetch()) == 3 and cells(new._repr_html_()) == [["ts", "v"]]
    assert "closed until 3" in new._repr_html_()


def test_only_so_many_rows_are_shown(db: minidsms.Connection) -> None:
    q = db.query("SELECT v FROM S [RANGE 1000]")
    new = db.query("SELECT v FROM S")
    db.push("S", {"k": ["a"] * 100, "v": range(100)}, ts=range(100))
    db.advance(100)
    assert len(cells(q._repr_html_())) == 21 and "and 80 more rows" in q._repr_html_()
    assert [row[1] for row in cells(new._repr_html_())[1:]] == [str(v) for v in range(80, 100)]


def test_a_plan_keeps_its_indentation_and_texts_stand_left_and_whole(db: minidsms.Connection) -> None:
    db.query(f"SELECT k FROM S [RANGE 10] WHERE {' OR '.join(f'v = {i}' for i in range(20))}", name="long")
    explained = db.execute("EXPLAIN long")
    assert [row for (row,) in cells(explained._repr_html_())[1:]] == [row for (row,) in explained]
    sides = [cell.get("style") for cell in read(db.execute("SELECT 'a' AS t, 2 AS n")._repr_html_()).iter("th")]
    assert sides == ["text-align:left;white-space:pre", "text-align:right"]


def test_nothing_in_data_names_or_text_becomes_markup(db: minidsms.Connection) -> None:
    quoted = NASTY.replace("'", "''")
    q = db.query(f"SELECT k, v FROM S [RANGE 10] WHERE k <> 'x' OR k = '{quoted}'", name="<b>q</b>")
    db.push("S", (NASTY, 1), ts=1)
    db.advance(1)
    for html in (q._repr_html_(), q.plan()._repr_html_(), db.execute("SHOW QUERIES")._repr_html_()):
        tags = {element.tag.rpartition("}")[2] for element in read(html).iter()}
        assert not tags & {"script", "b"} or html.count("<b>") == 1
        assert "<script" not in html and "\x1b" not in html and "\u202e" not in html


def test_a_failed_query_shows_why(db: minidsms.Connection) -> None:
    q = db.query("SELECT CAST(k AS INTEGER) FROM S")
    db.push("S", ("<x>", 1), ts=1)
    db.advance(5)
    assert "failed" in q._repr_html_() and "<x>" not in q._repr_html_()
    q.close()
    assert "closed" in q._repr_html_()


def test_a_plan_is_drawn_and_reads_as_text(db: minidsms.Connection) -> None:
    view = db.query("SELECT v FROM S WHERE v > 1").plan()
    assert "<svg" in view._repr_html_() and "Physical plan" in str(view) == repr(view)


def test_a_live_view_follows_the_query_in_its_place(db: minidsms.Connection) -> None:
    q = db.query("SELECT COUNT(*) FROM S [RANGE 1000]")
    shown: list[str] = []
    moved = threading.Semaphore(0)

    def show(html: str) -> None:
        shown.append(html)
        moved.release()

    view = q.live(interval_s=0.005, show=show)
    assert moved.acquire(timeout=240)
    db.push("S", [("a", 1), ("a", 2)], ts=[1, 2])
    db.advance(5)
    while cells(shown[-1])[1:] != [["2"]]:
        assert moved.acquire(timeout=240)
    before = len(shown)
    assert view.look() and len(shown) == before
    view.stop()
    view.stop()
    db.push("S", ("a", 3), ts=10)
    assert len(shown) == before and len(q.fetch()) > 0


def test_what_cannot_show_a_live_view_is_refused(db: minidsms.Connection) -> None:
    with pytest.raises(minidsms.Error, match="show is a function that takes the page's HTML, not int"):
        db.query("SELECT v FROM S").live(show=5)  # type: ignore[arg-type]


def test_a_live_view_ends_with_its_query(db: minidsms.Connection) -> None:
    q = db.query("SELECT v FROM S")
    view = q.live(interval_s=0.005, show=lambda html: None)
    q.close()
    view._thread.join(timeout=240)
    assert not view._thread.is_alive()


def test_a_live_view_goes_on_after_what_could_not_be_shown(db: minidsms.Connection) -> None:
    q = db.query("SELECT v FROM S", name="all")
    failed, shown = threading.Event(), threading.Event()

    def show(html: str) -> None:
        if "7" in cells(html)[-1]:
            if not failed.is_set():
                failed.set()
                raise OSError("the page is being loaded again")
            shown.set()

    view = q.live(interval_s=0.005, show=show)
    db.push("S", ("a", 7), ts=1)
    db.advance(1)
    assert failed.wait(240) and shown.wait(240)
    view.stop()


def test_rows_that_have_no_order_are_shown(db: minidsms.Connection) -> None:
    q = db.query("SELECT MAP(k := v) AS m, [v, NULL] AS l FROM S [RANGE 100]")
    db.push("S", [("a", 1), ("b", 2)], ts=[1, 2])
    db.advance(5)
    assert len(cells(q._repr_html_())) == 3


def test_a_live_view_at_the_end_of_a_cell_is_not_shown_a_second_time(db: minidsms.Connection) -> None:
    shown: list[str] = []
    view = db.query("SELECT v FROM S").live(show=shown.append)
    view._ipython_display_()  # what IPython calls for an object that displays itself
    assert len(shown) == 1
    view.stop()


def test_a_live_view_needs_a_notebook(db: minidsms.Connection) -> None:
    with pytest.raises(minidsms.Error, match="needs a notebook"):
        db.query("SELECT v FROM S").live()


def test_changes_are_awaited_while_another_task_pushes(db: minidsms.Connection) -> None:
    q = db.query("SELECT v FROM S")

    async def push() -> None:
        for i in range(5):
            db.push("S", ("a", i), ts=i)
            await asyncio.sleep(0)
        db.advance(10)

    async def listen() -> list[int]:
        seen: list[int] = []
        async for change in q:
            seen.append(change.row[0])
            if len(seen) == 5:
                break
        return seen

    async def both() -> list[int]:
        seen, _ = await asyncio.gather(listen(), push())
        return seen

    assert asyncio.run(both()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_who_has_waited_for_a_change_in_vain_waits_again(db: minidsms.Connection, is_cancelled: bool) -> None:
    q = db.query("SELECT v FROM S")

    async def go() -> list[Any]:
        changes = aiter(q)
        if is_cancelled:
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(changes), 0.01)
        db.push("S", [("a", 1), ("a", 2)], ts=[1, 2])
        db.advance(5)
        got = [(await asyncio.wait_for(anext(changes), 240)).row for _ in range(2)]
        await changes.aclose()  # type: ignore[attr-defined]
        return got

    assert asyncio.run(go()) == [(1,), (2,)]
    assert not q.wakers


def test_an_error_that_comes_when_nobody_waits_is_raised_for_who_waits_next(
    db: minidsms.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    q = db.query("SELECT v FROM S")
    waited, calls = threading.Event(), list[int]()

    def read(query: Any) -> bool:
        calls.append(1)
        assert waited.wait(240)
        raise minidsms.Error("the file has no column v")

    monkeypatch.setattr(type(q), "run_sources", read)
    monkeypatch.setattr(type(q), "has_sources", True)

    async def go() -> None:
        changes = aiter(q)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(changes), 0.01)
        waited.set()
        with pytest.raises(minidsms.Error, match="no column v"):
            await anext(changes)

    asyncio.run(go())
    assert len(calls) == 1


def test_changes_cannot_be_awaited_without_a_thread(db: minidsms.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    q = db.query("SELECT v FROM S")

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def go() -> None:
        with monkeypatch.context() as spent, pytest.raises(minidsms.Error, match="no thread can be started"):
            spent.setattr(type(q), "has_sources", True)
            spent.setattr(threading.Thread, "start", refuse)
            await anext(aiter(q))

    asyncio.run(go())
    assert not q.wakers


def test_changes_from_another_thread_wake_the_loop(db: minidsms.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing but being woken lets the loop see the changes.
    monkeypatch.setattr("minidsms.answers.async_changes._LOOK_S", 3600.0)
    q = db.query("SELECT v FROM S")

    def push() -> None:
        for i in range(50):
            db.push("S", ("a", i), ts=i)
        db.advance(50)

    async def listen() -> list[int]:
        task = asyncio.create_task(asyncio.to_thread(push))
        seen: list[int] = []
        async for change in q:
            seen.append(change.row[0])
            if len(seen) == 50:
                break
        await task
        return seen

    assert asyncio.run(listen()) == list(range(50))
    assert q.wakers == []


def test_a_query_closed_by_another_thread_just_before_a_fetch_ends_the_loop(
    db: minidsms.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    q = db.query("SELECT v FROM S")
    hand_out = q.hand_out

    def closed_before(loop: Loop) -> Iterator[minidsms.Change] | None:
        closing = threading.Thread(target=q.close)
        closing.start()
        closing.join()
        return hand_out(loop)

    monkeypatch.setattr(q, "hand_out", closed_before)

    async def listen() -> list[int]:
        return [change.row[0] async for change in q]

    assert asyncio.run(listen()) == []
    assert q.wakers == []


def test_bounded_sources_are_read_to_their_end(db: minidsms.Connection, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,k\n" + "".join(f"{i},{i}\n" for i in range(30)))
    db.execute(f"CREATE STREAM A (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{path}'")
    q = db.query("SELECT k FROM A WHERE k >= 10")

    async def listen() -> list[int]:
        return [change.row[0] async for change in q]

    assert asyncio.run(listen()) == list(range(10, 30))


def test_a_failure_comes_out_of_the_loop_after_the_last_answers(db: minidsms.Connection) -> None:
    q = db.query("SELECT CAST(k AS INTEGER) FROM S")
    db.push("S", [("1", 1), ("x", 1)], ts=[1, 2])
    db.advance(5)
    seen: list[int] = []

    async def listen() -> None:
        async for change in q:
            seen.append(change.row[0])

    with pytest.raises(QueryError):
        asyncio.run(listen())
    assert seen == [1]
