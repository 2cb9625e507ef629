"""The page in a real browser: a person writes a query, sees rows come, forces a plan, pins a graph, reads an error."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Iterator
from itertools import permutations
from typing import Any
from xml.etree import ElementTree

import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.statements.query_settings import ALTERABLE
from minidsms.web import scheduling

pytest.importorskip("uvicorn", reason="the page needs minidsms[web]")
playwright = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here (apt-get install chromium)")

DECLARED = "CREATE STREAM S (v INTEGER, t TEXT)"
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def db() -> Iterator[Connection]:
    """One connection with one server for all; decisions rest on counts."""
    with minidsms.connect(cost_model="fixed") as db:
        yield db


@pytest.fixture(scope="module")
def opened(db: Connection) -> Iterator[tuple[Any, list[str]]]:
    """One window of one browser for all, and what it complains of, the content security policy too."""
    with playwright.sync_playwright() as started:
        arguments = ["--no-sandbox", "--disable-gpu"] if os.geteuid() == 0 else ["--disable-gpu"]
        browser = started.chromium.launch(executable_path=BROWSER, args=arguments)
        shown = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        complaints: list[str] = []
        shown.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        shown.on("pageerror", lambda error: complaints.append(str(error)))
        shown.set_default_timeout(WAIT_MS)
        playwright.expect.set_options(timeout=WAIT_MS)
        yield shown, complaints
        browser.close()


@pytest.fixture
def page(opened: tuple[Any, list[str]], db: Connection) -> Iterator[Any]:
    """The page as one opens it, of a connection with a stream and no query; a complaint is an error."""
    shown, complaints = opened
    shown.goto("about:blank")
    for query in list(db.queries.values()):
        query.close()
    db.execute(f"DROP STREAM IF EXISTS S; {DECLARED}")
    db.ui().observer.look()
    shown.goto(db.ui().url)
    playwright.expect(shown.locator("#state")).to_have_text("live")
    yield shown
    assert complaints == []


def run(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Control+Enter")


def push(db: Connection, start: int, n: int = 2000) -> None:
    """Rows, and a look at them."""
    values = list(range(start, start + n))
    db.push("S", {"v": values, "t": ["a"] * n}, ts=values)
    db.ui().observer.look()


def test_a_query_is_written_and_its_rows_come(page: Any, db: Connection) -> None:
    run(page, "CREATE QUERY counts AS SELECT t, COUNT(*) AS n FROM S [ROWS 100] GROUP BY t")
    page.locator(".box", has_text="Aggregate").wait_for()
    push(db, 0)
    page.locator("#answer td", has_text="100").wait_for()
    page.click("[data-view=bars]")
    page.locator("#answer svg rect").first.wait_for()
    page.click("[data-view=line]")
    page.locator("#answer svg path.line").first.wait_for()


def test_places_of_the_earth_stand_on_a_map(page: Any, db: Connection) -> None:
    run(page, "CREATE QUERY places AS SELECT t, v AS lat, 2 * v AS lon, v * v AS n FROM S [ROWS 80]")
    page.locator("#said", has_text="places runs").wait_for()
    push(db, 0, 81)  # what is at the last instant is answered with the next
    page.click("[data-view=map]")
    playwright.expect(page.locator("#answer circle.place")).to_have_count(80)
    assert page.locator("#answer path.land").count() == 1
    labels = page.locator("#answer svg.map text").all_text_contents()
    assert {"30°N", "60°N", "60°E", "120°E"} <= set(labels) and any(label.endswith(" km") for label in labels)
    with page.expect_download() as download:
        page.locator("#answer button", has_text="SVG").click()
    saved = ElementTree.parse(download.value.path())
    dots = saved.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(dots) == 80 and len({dot.get("fill") for dot in dots}) > 20
    assert all(re.fullmatch(r"rgb\(\d+, \d+, \d+\)", dot.get("fill", "")) for dot in dots)
    page.select_option("#answer select[aria-label=across]", "n")
    playwright.expect(page.locator("#answer path.land")).to_have_count(0)
    playwright.expect(page.locator("#answer circle.place")).to_have_count(80)


def test_a_decision_shows_the_plans_before_and_after_and_what_each_other_order_costs(page: Any, db: Connection) -> None:
    db.execute("CREATE QUERY rare AS SELECT v FROM S WHERE v > 10 AND v % 5 < 4 AND v % 4 = 1")
    db.ui().observer.look()
    push(db, 0, 4000)
    # Decisions of other tests' queries stand there, too; the newest comes first.
    page.locator(".decision", has_text=re.compile("rare .*another order costs less")).first.click()
    playwright.expect(page.locator("dialog .side text.plan-line")).to_have_count(6)
    plans = page.locator("dialog .alternatives tbody tr td:first-child").all_text_contents()
    assert sorted(plans) == sorted(", ".join(f"F{i}" for i in order) for order in permutations((1, 2, 3)))
    assert (
        page.locator("dialog .alternatives tr.taken td:first-child").all_text_contents() == plans[:1] == ["F3, F2, F1"]
    )


def test_an_experiment_with_all_schedulers_is_one_click_away(
    page: Any, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "BURSTS", 1)
    scheduling.queued("fifo", 0, bursts=1)  # what must be compiled is compiled while nobody waits
    page.select_option("#examples select[aria-label=Experiments]", label="Chain against FIFO, Greedy and round robin")
    playwright.expect(page.locator(".schedulers path.line")).to_have_count(4)
    assert [text.partition(":")[0] for text in page.locator(".schedulers .keys span").all_text_contents()] == [
        *("round_robin", "fifo", "greedy", "chain")
    ]
    assert "SELECT DISTINCT k" in page.input_value("#text") and not db.queries


def test_a_forced_plan_redraws_the_graph_and_stands_among_the_decisions(page: Any, db: Connection) -> None:
    db.execute("CREATE QUERY few AS SELECT v FROM S WHERE v > 10 AND t LIKE 'a%' AND v % 3 = 1")
    db.ui().observer.look()
    page.locator(".box", has_text="Select").click()
    before = page.locator(".box text.plan-line").all_text_contents()
    page.locator("#inspector button", has_text="⇄").first.press("Enter")
    page.locator(".box.changed").wait_for()
    after = page.locator(".box text.plan-line").all_text_contents()
    assert after != before and sorted(after) == sorted(before)
    assert page.evaluate("document.activeElement.textContent") == "⇄"
    page.locator(".decision", has_text="pinned").first.click()
    playwright.expect(page.locator("dialog .side text.plan-line")).to_have_count(6)
    drawn = [page.locator(f"dialog .side:nth-child({i}) text.plan-line").all_text_contents() for i in (1, 2)]
    assert drawn == [before, after]
    playwright.expect(page.locator("dialog .considered")).to_contain_text("drop rates")


def test_a_property_is_pinned_and_goes_on(page: Any, db: Connection) -> None:
    db.execute("CREATE QUERY few AS SELECT v FROM S WHERE v > 10")
    push(db, 0)
    page.locator(".box", has_text="Select").press("Enter")
    page.locator(".property", has_text="elements_in").press("Enter")
    value = page.locator(".graph .value")
    playwright.expect(value).to_have_text("2.00k")
    push(db, 2000)
    playwright.expect(value).to_have_text("4.00k")
    page.reload()
    playwright.expect(page.locator(".graph .value")).to_have_text("4.00k")


def test_two_plans_of_a_query_are_compared_by_what_they_take(page: Any, db: Connection) -> None:
    db.execute("CREATE QUERY few AS SELECT v FROM S WHERE v > 10 AND v % 3 = 1")
    db.ui().observer.look()
    page.locator("#query-list button", has_text="Compare").click()
    playwright.expect(page.locator("#query-list .query")).to_have_count(2)
    push(db, 0)
    taken = page.locator(".graph.wide .keys span")
    playwright.expect(taken.nth(1)).to_contain_text(re.compile(r"few_pinned.2 Select: \d+(\.\d+)? [mµ]?s"))
    page.locator(".graph button", has_text="From now").click()
    playwright.expect(taken.nth(1)).to_have_text("few_pinned.2 Select: 0 s")


def test_the_keyboard_reaches_everything(page: Any, db: Connection) -> None:
    db.execute("CREATE QUERY few AS SELECT v FROM S WHERE v > 10 AND v % 3 = 1")
    db.ui().observer.look()
    box = page.locator(".box", has_text="Select")
    box.wait_for()
    before = page.locator("svg.plan").first.get_attribute("viewBox")
    box.press("ArrowRight")
    assert page.locator("svg.plan").first.get_attribute("viewBox") != before
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(e => e.id || e.ariaLabel || e.textContent)(document.activeElement)"))
        if len(reached) > 20 and page.evaluate("document.activeElement === document.body"):
            break
    assert {"open-settings", "text", "run", "Pause", "Drop", "Table", "Map", "Save SVG", "Examples"} <= reached
    assert any("Select" in name for name in reached)
    page.focus("#open-settings")
    page.keyboard.press("Enter")
    assert page.locator("dialog#settings").is_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "open-settings"
    page.get_by_role("button", name="Pause").press("Enter")
    page.get_by_role("button", name="Resume").press("Enter")
    page.get_by_role("button", name="Pause").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Pause"


def test_a_setting_is_changed(page: Any, db: Connection) -> None:
    page.click("#open-settings")
    page.fill(".setting input[name=batch_size]", "1234")
    page.press(".setting input[name=batch_size]", "Enter")
    page.get_by_text("batch_size is 1234").wait_for()
    assert db.settings["batch_size"] == 1234
    db.execute("CREATE QUERY few AS SELECT v FROM S WHERE v > 10")
    db.ui().observer.look()
    page.click("#settings button[aria-label=close]")
    page.locator("#query-list button", has_text="Settings").click()
    page.fill(".setting input[name=memory_priority]", "4")
    page.press(".setting input[name=memory_priority]", "Enter")
    page.get_by_text("memory_priority is 4").wait_for()
    assert db.queries["few"].settings.own == {"memory_priority": 4}
    assert page.locator(".setting").count() == len(ALTERABLE)


def test_an_error_is_read_at_its_place(page: Any, db: Connection) -> None:
    run(page, "SELECT v\nFROM S WHERE vv > 1")
    error = page.locator("#said pre.error")
    playwright.expect(error).to_contain_text("^^")
    assert "2 | FROM S WHERE vv > 1" in error.text_content()
    assert (
        page.evaluate("(t => t.value.slice(t.selectionStart, t.selectionEnd))(document.getElementById('text'))") == "vv"
    )


def test_what_is_typed_is_completed(page: Any, db: Connection) -> None:
    page.locator("#text").press_sequentially("SELECT v FR", delay=15)
    page.locator(".offered li", has_text="FROM").wait_for()
    page.press("#text", "Tab")
    assert page.input_value("#text") == "SELECT v FROM"


_TYPE_AND_TAB = """letter => {
    document.execCommand("insertText", false, letter);
    const tab = new KeyboardEvent("keydown", { key: "Tab", bubbles: true, cancelable: true });
    document.getElementById("text").dispatchEvent(tab);
}"""


@pytest.mark.parametrize(("letter", "completed"), [("R", "SELECT v FROM"), ("x", "SELECT v Fx")])
def test_what_is_typed_beside_an_offer_is_part_of_what_it_replaces(page: Any, letter: str, completed: str) -> None:
    page.locator("#text").press_sequentially("SELECT v F", delay=15)
    page.locator(".offered li", has_text="FROM").wait_for()
    page.evaluate(_TYPE_AND_TAB, letter)
    assert page.input_value("#text") == completed


def test_names_and_values_are_never_markup(page: Any, db: Connection) -> None:
    name = HOSTILE.replace("`", "")
    db.execute(f"CREATE QUERY `{name}` AS SELECT t AS `{name}` FROM S")
    db.ui().observer.look()
    page.locator("#query-list button", has_text="<img").first.click()
    db.push("S", {"v": [1], "t": [HOSTILE]}, ts=1)
    db.ui().observer.look()
    page.locator("#answer td", has_text="<img").first.wait_for()
    page.locator(".box").first.click()
    assert page.title() == "minidsms"
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_nothing_is_wider_than_the_window(page: Any, db: Connection, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    db.execute("CREATE QUERY few AS SELECT v, t FROM S WHERE v > 10 AND t LIKE 'a%' AND v % 3 = 1")
    push(db, 0)
    page.locator(".box", has_text="Select").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_of_many_plans_the_one_chosen_is_large_enough_to_read(page: Any, db: Connection) -> None:
    page.set_viewport_size({"width": 400, "height": 900})
    for i in range(6):
        db.execute(f"CREATE QUERY few{i} AS SELECT v FROM S WHERE v > {i} AND v % 3 = 1")
    db.ui().observer.look()
    page.locator(".box", has_text="v > 4").press("Enter")
    playwright.expect(page.locator("#inspector")).to_be_visible()
    assert page.locator(".box.chosen").bounding_box()["width"] > 100
    page.get_by_role("button", name="Fit").click()
    assert page.locator(".box.chosen").bounding_box()["width"] < 60
    db.execute("CREATE QUERY more AS SELECT v FROM S WHERE v > 7")
    db.ui().observer.look()
    page.locator(".box", has_text="v > 7").wait_for()
    assert page.locator(".box.chosen").bounding_box()["width"] < 60  # until something else is chosen


def test_a_page_that_cannot_be_seen_listens_no_more_and_catches_up(page: Any, db: Connection) -> None:
    db.execute("CREATE QUERY few AS SELECT v FROM S WHERE v > 10")
    push(db, 0)
    page.locator(".box", has_text="Select").press("Enter")
    page.locator(".property", has_text="elements_in").press("Enter")
    playwright.expect(page.locator(".graph .value")).to_have_text("2.00k")
    see = """is => {
        Object.defineProperty(document, "hidden", { value: !is, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(see, False)
    listeners = db.ui().application.listeners
    for ts in itertools.count(2000):  # what is told is how the server learns that nobody listens
        push(db, ts, 1)
        if not listeners:
            break
        page.wait_for_timeout(20)
    push(db, ts + 1, 9000 - ts - 1)
    playwright.expect(page.locator(".graph .value")).to_have_text("2.00k")
    page.evaluate(see, True)
    playwright.expect(page.locator(".graph .value")).to_have_text("9.00k")


def test_a_query_is_paused_resumed_and_dropped_by_its_buttons(page: Any, db: Connection) -> None:
    db.execute("CREATE QUERY few AS SELECT v FROM S WHERE v > 10; CREATE QUERY other AS SELECT t FROM S WHERE v > 20")
    db.ui().observer.look()
    shown = page.locator("#query-list .query", has_text="few")
    shown.get_by_role("button", name="Pause").click()
    playwright.expect(shown.locator(".tag")).to_have_text("paused")
    push(db, 0)
    assert (db.queries["few"].results, db.queries["other"].results) == (0, 1979)
    shown.get_by_role("button", name="Resume").click()
    playwright.expect(shown.locator(".tag")).to_have_text("running")
    push(db, 2000)
    assert db.queries["few"].results == 3989  # what came meanwhile has waited
    asked: list[str] = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    shown.get_by_role("button", name="Drop").click()
    assert "few" in asked[0] and set(db.queries) == {"few", "other"}
    page.once("dialog", lambda dialog: dialog.accept())
    shown.get_by_role("button", name="Drop").click()
    playwright.expect(page.locator("#query-list .query")).to_have_count(1)
    playwright.expect(page.locator(".box", has_text="v > 10")).to_have_count(0)
    assert set(db.queries) == {"other"}
