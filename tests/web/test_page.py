"""What the page shows of a connection, and does to it."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
import time
from importlib import resources

import pyarrow.parquet as parquet
import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.cql.errors import ClosedError, Error
from minidsms.past import past, pictures
from minidsms.settings import SETTINGS
from minidsms.streamon.loop import adaptations_of
from minidsms.web import observer
from minidsms.web.examples import EXAMPLES, Example
from minidsms.web.scheduling import queued
from tests.web.pages import Page

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x1b[31m\"'`${x}"


def test_the_plan_is_drawn_once_where_queries_share_it(db: Connection) -> None:
    for name in ("means", "twice"):
        db.query("SELECT road, AVG(speed) AS mean FROM Pos [RANGE 10 SECONDS] GROUP BY road", name=name)
    graph = Page(db).events("graph")["graph"]
    windows = [node for node in graph["nodes"] if node["name"] == "RangeWindow"]
    assert len(windows) == 1 and windows[0]["queries"] == ["means", "twice"]
    assert sum(node["name"] == "Output" for node in graph["nodes"]) == 2
    numbers = {node["id"] for node in graph["nodes"]}
    assert all({edge["from"], edge["to"]} <= numbers for edge in graph["edges"])


def test_of_many_queries_the_newest_are_shown(db: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((past, "MOST_QUERIES"), (observer, "MOST_QUERIES"), (pictures, "MOST_OPERATORS")):
        monkeypatch.setattr(module, name, 20)
    for i in range(30):
        db.query(f"SELECT road, COUNT(*) AS n FROM Pos [RANGE {i + 1} SECONDS] GROUP BY road", name=f"n{i}")
    told = Page(db).events("graph", "catalog")
    names = {name for node in told["graph"]["nodes"] for name in node["queries"]}
    assert "n29" in names and 10 < len(told["graph"]["nodes"]) < 25
    assert told["graph"]["undrawn"] == 30 - len(names)
    assert told["catalog"]["queries"][-1]["name"] == "n29" and told["catalog"]["more_queries"] == 10


def test_boxes_do_not_overlap(db: Connection) -> None:
    for i in range(4):
        db.query(f"SELECT road, COUNT(*) AS n FROM Pos [RANGE {i + 1} SECONDS] WHERE speed > {i} GROUP BY road")
    boxes = [node["box"] for node in Page(db).events("graph")["graph"]["nodes"]]
    for i, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[:i]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_figures_are_those_of_sys_stream(db: Connection) -> None:
    db.query("SELECT car FROM Pos WHERE speed > 50", name="fast")
    page = Page(db)
    db.push("Pos", [(1, "A", 60.0), (2, "A", 40.0)], ts=[1, 2])
    page.shown.observer.look()
    told = page.events("now")["now"]["told"]
    select = told["operator"]["fast.2 Select"]
    assert (select["elements_in"], select["elements_out"]) == (2, 1)
    assert told["source"]["Pos"]["accepted"] == 2
    assert told["query"]["fast"]["results"] == 1
    series = page.ask("/api/series", kind="source", entity="Pos", property="accepted")
    assert series["values"][0] == 0 and series["values"][-1] == 2
    assert series["times"] == sorted(series["times"])


def test_statements_run_and_an_error_has_its_place(db: Connection) -> None:
    page = Page(db)
    done = page.tell("/api/run", text="SHOW STREAMS;\nSELECT car FROM Pos;\nSELECT speeed FROM Pos;\nSHOW STREAMS")
    assert [row[0] for row in done["results"][0]["table"]["rows"]] == ["Pos"]
    assert done["results"][1]["queries"] == ["q1"] and len(done["results"]) == 2
    assert done["error"]["position"] == [3, 8]
    assert "^^^^^^" in done["error"]["text"] and 'did you mean "speed"' in done["error"]["text"]


def test_answers_are_looked_at_and_not_taken(db: Connection) -> None:
    stream = db.query("SELECT ISTREAM(car, road) FROM Pos [NOW]", name="cars")
    relation = db.query("SELECT road, COUNT(*) AS n FROM Pos [RANGE 1 MINUTE] GROUP BY road", name="roads")
    page = Page(db)
    page.ask("/api/answer", query="cars")
    db.push("Pos", [(1, "A", 60.0), (2, "B", 40.0), (3, "A", 1.0)], ts=[1, 2, 3])
    db.advance(4)
    taken = stream.fetch()
    assert len(taken) == 3
    page.shown.application._answers._kept.clear()
    assert [change[3] for change in page.ask("/api/answer", query="cars")["changes"]] == [[1, "A"], [2, "B"], [3, "A"]]
    answer = page.ask("/api/answer", query="roads", rows=1)
    assert (answer["total"], answer["present"]) == (2, [["A", 2]])
    assert len(relation.fetch()) == 4
    db.execute("DROP QUERY roads")
    assert page.ask("/api/answer", query="roads") == {"name": "roads", "error": "no query 'roads' is running"}


def test_texts_looked_at_outlive_the_sweep_of_the_dictionary(db: Connection) -> None:
    query = db.query("SELECT ISTREAM(road) FROM Pos [NOW]")
    query.look_on(3)
    for i in range(200):
        db.push("Pos", [(j, f"road {i} {j}", 1.0) for j in range(200)], ts=i)
        query.fetch()
    db.advance(1000)
    query.fetch()
    for _ in range(3):
        db.process()
    assert [change.row for change in query.look_on(3)] == [("road 199 197",), ("road 199 198",), ("road 199 199",)]


def test_a_query_of_the_page_keeps_no_answers(db: Connection) -> None:
    page = Page(db)
    page.tell("/api/run", text="CREATE QUERY all_of_it AS SELECT car FROM Pos")
    db.push("Pos", {"car": list(range(5000)), "road": ["A"] * 5000, "speed": [1.0] * 5000}, ts=1)
    assert db.queries["all_of_it"].fetch() == []
    assert len(page.ask("/api/answer", query="all_of_it", rows=5000)["changes"]) == 1000
    assert [change[3][0] for change in page.ask("/api/answer", query="all_of_it", rows=3)["changes"]] == [
        4997,
        4998,
        4999,
    ]


def test_a_plan_is_forced_seen_and_kept_among_the_pictures(db: Connection) -> None:
    db.execute("CREATE QUERY few AS SELECT car FROM Pos WHERE speed > 10 AND car % 3 = 1 AND road LIKE 'A%'")
    page = Page(db)
    before = page.events("graph", "catalog")
    place = before["catalog"]["places"][0]
    assert (place["order"], place["pinned"]) == ([0, 1, 2], False)
    told = page.tell("/api/plan", entity=place["entity"], number=0, action="force", plan=[2, 0, 1])
    assert told == {"plan": "F3, F1, F2", "pinned": True}
    page.shown.observer.look()
    after = page.events("graph", "catalog", "decisions", "pictures")
    assert after["catalog"]["places"][0]["pinned"]
    lines = [node["plan"] for node in after["graph"]["nodes"] if node["plan"]]
    assert [line[:2] for line in lines[0]] == ["F3", "F1", "F2"]
    decision = after["decisions"][-1]
    assert (decision["old"], decision["new"], decision["reason"]) == ("F1, F2, F3", "F3, F1, F2", "pinned")
    drawn = [page.ask("/api/picture", at=at)["nodes"] for at in after["pictures"]]
    assert drawn[-2:] == [before["graph"]["nodes"], after["graph"]["nodes"]]
    assert after["pictures"][-2] < decision["at"] <= after["pictures"][-1]
    assert not page.tell("/api/plan", entity=place["entity"], number=0, action="unpin")["pinned"]


def test_boxes_show_trees_indexes_routes_and_reduced_windows_and_stay_while_figures_change() -> None:
    texts = {
        "tree": (
            "SET join_plan = xjoin",
            "SELECT A.x FROM A [ROWS 9], B [ROWS 9], C [ROWS 9] WHERE A.x = B.x AND B.y = C.y",
        ),
        "reduced": (
            "SET state_reduction = 'k-mon'",
            "SELECT ISTREAM(A.y, B.y) FROM A [RANGE 9], B [RANGE 9] WHERE A.x = B.x AND B.y > 0",
        ),
        "index": (
            "SET state_reduction = off; SET join_plan = mjoin; SET join_index = patterns",
            "SELECT A.x FROM A [ROWS 9], B [ROWS 9], C [ROWS 9] "
            "WHERE A.x = B.x AND A.y = B.y AND B.y = C.y AND A.x = C.x",
        ),
    }
    with minidsms.connect() as db:
        db.execute("".join(f"CREATE STREAM {name} (x INTEGER, y INTEGER); " for name in "ABC"))
        for name, (settings, text) in texts.items():
            db.execute(settings)
            db.query(text, name=name)
        looking = Page(db).shown.observer
        seen = []
        for turn in range(3):
            for name in "ABC":
                db.push(name, [(i % 3, i % 2) for i in range(20)], ts=turn)
            looking.look()
            seen.append(looking.parts["graph"].version)
        graph, now = (json.loads(looking.parts[part].text) for part in ("graph", "now"))
    assert len(set(seen[1:])) == 1
    plans = [line for node in graph["nodes"] for line in node["plan"]]
    assert "(A, B)" in plans and "A: B, C" in plans
    assert any(line.startswith("index of") for line in plans)
    assert any("rows_of_A" in state for state in now["state"].values())


def test_of_decisions_only_those_are_told_that_are_new_or_known_better(db: Connection) -> None:
    db.execute("CREATE QUERY few AS SELECT car FROM Pos WHERE speed > 10 AND car % 3 = 1")
    place = adaptations_of(db.queries["few"].network.working)[0]
    looking = Page(db).shown.observer

    def told(since: int) -> list[tuple[int, float | None]]:
        looking.look()
        decisions = json.loads(looking.parts["decisions"].since(since))
        return [(each["number"], each["measured"]) for each in decisions]

    place.pin((1, 0))
    place.pin((0, 1))
    assert told(since=0) == [(1, None), (2, None)]
    seen = looking.parts["decisions"].version
    assert told(seen) == []
    place.pin((1, 0))
    next(iter(db.streamon.plan_log)).measured_gain = 0.5
    assert told(seen) == [(1, 0.5), (3, None)]
    assert told(since=0) == [(1, 0.5), (2, None), (3, None)]


def test_two_plans_of_a_query_are_compared_on_operators_of_their_own(db: Connection) -> None:
    query = db.query("SELECT car FROM Pos WHERE speed > 10 AND car % 3 = 1 AND road LIKE 'A%'", name="few")
    adaptations_of(query.network.working)[0].pin((2, 1, 0))
    page = Page(db)
    told = page.tell("/api/compare", query="few")
    copy = db.queries[told["query"]]
    assert told["entities"] == ["few.2 Select", "few_pinned.2 Select"]
    assert not {id(op) for op in query.network.operators} & {id(op) for op in copy.network.operators}
    plans = [adaptations_of(each.network.working)[0].executor.plan for each in (query, copy)]
    assert plans == [(2, 1, 0), (0, 1, 2)]
    db.push("Pos", [(i, "A" if i % 2 else "B", float(i)) for i in range(100)], ts=1)
    assert query.results == copy.results > 0
    assert page.tell("/api/compare", query="few")["query"] == "few_pinned_2"


@pytest.mark.parametrize("plan", [[0, 1], [0, 0, 1], "F1", None, [0, 1, 5], [[0], 1, 2]])
def test_no_plan_is_forced_that_is_none(db: Connection, plan: object) -> None:
    db.execute("CREATE QUERY few AS SELECT car FROM Pos WHERE speed > 10 AND car % 3 = 1 AND road LIKE 'A%'")
    page = Page(db)
    body = {"entity": "few.2 Select", "number": 0, "action": "force", "plan": plan}
    status, _, answer = page.request("POST", "/api/plan", body)
    assert status == 409 and "is no plan" in json.loads(answer)["error"]


def test_completion_offers_what_the_shell_does(db: Connection) -> None:
    found = Page(db).tell("/api/complete", before="SHOW STREAMS; SELECT sp", after=" FROM Pos")
    assert {"text": "speed", "length": 2, "meta": "Pos FLOAT", "shown": ""} in found


def test_files_are_fed_paused_and_stopped(db: Connection, tmp_path: object) -> None:
    path = f"{tmp_path}/pos.csv"
    with open(path, "w") as file:
        file.write("ts,car,road,speed\n" + "".join(f"{i},{i},A,1.0\n" for i in range(100)))
    db.execute("CREATE STREAM Cars (ts TIMESTAMP, car INTEGER, road TEXT, speed FLOAT) TIMESTAMP BY ts")
    page = Page(db)
    feeding = page.shown.feeding
    feeding.stop()  # steps are taken by the test
    feeding._is_over = False
    fed = page.tell("/api/feed", action="file", name="Cars", path=path)
    assert (fed[0]["names"], fed[0]["state"]) == (["Cars"], "running")
    number = fed[0]["number"]
    assert page.tell("/api/feed", action="pause", number=number)[0]["state"] == "paused"
    feeding._step()
    assert db.stream_input("Cars").counters.accepted == 0
    page.tell("/api/feed", action="resume", number=number)
    while feeding.told()[0]["state"] == "running":
        feeding._step()
    assert db.stream_input("Cars").counters.accepted == 100
    assert page.request("POST", "/api/feed", {"action": "file", "name": "Cars", "path": "/nowhere"})[0] == 409


def test_answers_are_exported(db: Connection) -> None:
    db.query("SELECT road, COUNT(*) AS n FROM Pos [RANGE 1 MINUTE] GROUP BY road", name="roads")
    db.push("Pos", [(1, "A", 60.0), (2, "B", 40.0), (3, "A", 1.0)], ts=[1, 2, 3])
    db.advance(4)
    page = Page(db)
    assert sorted(page.request("GET", "/export/roads")[2].decode().split()) == ['"A",2', '"B",1', '"road","n"']
    _, headers, _ = page.request("GET", "/export/roads?format=csv")
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''roads.csv"
    table = parquet.read_table(io.BytesIO(page.request("GET", "/export/roads?format=parquet")[2]))
    assert sorted(table.to_pylist(), key=str) == [{"road": "A", "n": 2}, {"road": "B", "n": 1}]


@pytest.mark.parametrize("example", [e for e in EXAMPLES if not e.schedulers], ids=lambda example: example.name)
def test_an_example_runs_and_what_it_watches_is_told(db: Connection, example: Example) -> None:
    before = {name: db.settings[name] for name in SETTINGS}
    page = Page(db)
    feeding = page.shown.feeding
    feeding.stop()  # steps are taken by the test
    feeding._is_over = False
    assert page.tell("/api/run", text=example.text)["error"] is None
    assert {name: db.settings[name] for name in SETTINGS} == before
    entities = page.tell("/api/compare", query=example.compared)["entities"] if example.compared else []
    assert len(entities) == (2 if example.compared else 0)
    page.tell("/api/feed", action="declared", speed=0)
    for _ in range(4):
        feeding._step()
    page.shown.observer.look()
    told = page.events("now")["now"]["told"]
    for kind, entity, name in [*example.watched, *(("operator", entity, "total_ns") for entity in entities)]:
        assert name in told[kind][entity]
    assert all(told["source"][name]["accepted"] for name in feeding.told()[0]["names"])
    assert db.queries.keys() and not any(query.failure for query in db.queries.values())


def test_a_burst_waits_under_every_scheduler_and_is_worked_off() -> None:
    # Neither of these schedulers rests on measured times: what waits is the same on every machine.
    assert [max(queued(name, 0, bursts=1)) for name in ("round_robin", "fifo")] == [9019, 8067]
    assert [queued(name, 0, bursts=1)[-1] for name in ("greedy", "chain")] == [0, 0]


def test_sources_of_a_second_example_are_read_too(db: Connection) -> None:
    page = Page(db)
    feeding = page.shown.feeding
    feeding.stop()
    feeding._is_over = False
    for example, stream in ((EXAMPLES[0], "Trade"), (EXAMPLES[1], "Bid")):
        assert page.tell("/api/run", text=example.text)["error"] is None
        page.request("POST", "/api/feed", {"action": "declared", "speed": 0})
        assert stream in feeding.told()[0]["names"]
        for _ in range(4):
            feeding._step()
        assert db.stream_input(stream).counters.accepted > 0


def test_hostile_names_and_values_arrive_as_they_are_and_as_nothing_but_text(db: Connection) -> None:
    db.execute(f"CREATE STREAM `{HOSTILE.replace('`', '``')}` (`<b>` TEXT)")
    query = db.query(f"SELECT `<b>` FROM `{HOSTILE.replace('`', '``')}`", name="<i>q")
    page = Page(db)
    page.ask("/api/answer", query=query.name)
    db.push(HOSTILE, [(HOSTILE,)], ts=1)
    page.shown.observer.look()
    page.shown.application._answers._kept.clear()
    status, headers, body = page.request("GET", "/api/answer?query=%3Ci%3Eq")
    assert status == 200 and headers["content-type"] == "application/json"
    assert json.loads(body)["changes"][0][3] == [HOSTILE]
    told = page.events("graph", "now", "catalog")
    assert HOSTILE in told["now"]["told"]["source"]
    assert not any("\x1b" in line or "\u202e" in line for node in told["graph"]["nodes"] for line in node["detail"])


def test_no_script_of_the_page_makes_markup_of_text() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser"
        r"|createContextualFragment|srcdoc|https?://(?!www\.w3\.org/2000/svg)"
    )
    files = [file for file in (resources.files("minidsms.web") / "static").iterdir()]
    assert len(files) > 10
    for file in files:
        text = file.read_text()
        assert not forbidden.search(text), file.name
        if file.name.endswith(".html"):
            assert not re.search(r"<style|\son\w+=|\sstyle=|<script(?![^>]*src=)", text)


def luminance(colour: str) -> float:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(text: str, ground: str) -> float:
    """Of two colours, by the Web Content Accessibility Guidelines: 4.5 is asked of text."""
    low, high = sorted((luminance(text), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, other: str, share: float) -> str:
    """So much of a colour, the rest of another."""
    pairs = [(int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_stands_out_from_what_it_stands_on(scheme: int) -> None:
    static = resources.files("minidsms.web") / "static"
    colours = {
        found[1]: found[2 + scheme]
        for found in re.finditer(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", (static / "colours.css").read_text())
    }
    plan = (static / "plan.css").read_text()
    most, small = (re.search(text, plan) for text in (r"var\(--share, 0\) \* (\d+)%", r"--ink\) (\d+)%, var\(--muted"))
    assert most and small
    colours["hottest"] = mixed(colours["hot"], colours["node"], int(most[1]) / 100)
    colours["small"] = mixed(colours["ink"], colours["muted"], int(small[1]) / 100)
    written = {
        "ink": "ground card raised node store accent-ground hottest",
        "muted": "ground card raised",
        "small": "node store hottest",
        "accent": "card raised node hottest accent-ground",
        "wrong": "card raised wrong-ground",
        "good": "card raised",
        "on-accent": "accent",
    }
    for text, grounds in written.items():
        for ground in grounds.split():
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for i in range(1, 9):
        assert contrast(colours[f"series-{i}"], colours["card"]) >= 3


def test_a_long_series_reaches_back_to_its_beginning() -> None:
    from minidsms.past.series import MOST_POINTS, AllSeries

    histories = AllSeries()
    for i in range(10 * MOST_POINTS):
        histories.add(float(i), [(("operator", "q.1", "selectivity"), float(i))], lambda entity: 0.0)
    series = histories.of(("operator", "q.1", "selectivity"))
    assert series.times[0] == 0.0 and len(series.times) <= MOST_POINTS
    assert series.times[-1] > 9.5 * MOST_POINTS
    steps = {b - a for a, b in zip(series.times, series.times[1:])}
    assert max(steps) <= 2 * min(steps)


def test_what_happened_before_the_page_was_asked_for_is_kept_figures_and_plans(db: Connection) -> None:
    query = db.query("SELECT car FROM Pos WHERE speed > 10 AND car % 3 = 1 AND road LIKE 'A%'", name="few")
    place = adaptations_of(query.network.working)[0]
    for ts, plan in enumerate([(0, 1, 2), (2, 1, 0), (1, 2, 0)]):
        place.pin(plan)
        db.past.due_s = db.past.figures_due_s = 0.0
        db.push("Pos", [(1, "A", 60.0)] * 100, ts=ts)
    page = Page(db)
    came = page.ask("/api/series", kind="operator", entity="few.2 Select", property="elements_in")
    assert came["values"] == [0, 0, 100, 200, 300]
    assert came["times"][0] == pytest.approx(query.began_s - db.began_s, abs=0.001)
    assert came["times"] == sorted(came["times"])
    told = page.events("decisions", "pictures")
    drawn = [
        next(node["plan"] for node in page.ask("/api/picture", at=at)["nodes"] if node["name"] == "Select")
        for at in told["pictures"]
    ]
    assert [[line[:2] for line in lines] for lines in drawn] == [
        ["F1", "F2", "F3"],
        ["F3", "F2", "F1"],
        ["F2", "F3", "F1"],
    ]
    first, second = told["decisions"]
    assert told["pictures"][0] < first["at"] <= told["pictures"][1] < second["at"] <= told["pictures"][2]
    assert set(first["statistics"]) >= {"order", "drop_rates", "costs"}
    assert page.ask("/api/decisions", before=second["number"] + 1) == told["decisions"]
    assert page.ask("/api/decisions", before=first["number"]) == []


def test_a_decision_right_after_the_registration_has_the_plans_before_and_after_it(db: Connection) -> None:
    for turn in range(3):
        query = db.query(f"SELECT car FROM Pos WHERE speed > {turn} AND car % 3 = 1", name=f"few{turn}")
        adaptations_of(query.network.working)[0].pin((1, 0))
    db.push("Pos", (1, "A", 1.0), ts=1)
    for turn, decision in enumerate(db.streamon.plan_log):
        at_s = decision.decided_s - db.began_s
        before = [picture for picture in db.past.pictures if picture.at_s < at_s][-1]
        after = next(picture for picture in db.past.pictures if picture.at_s >= at_s)
        plans = [
            [node.parts for node in picture.drawn().graph.nodes if f"few{turn}" in node.queries and node.parts]
            for picture in (before, after)
        ]
        assert [[line[:2] for line in lines[0]] for lines in plans] == [["F1", "F2"], ["F2", "F1"]]


def test_a_plan_is_seen_that_stands_where_one_stood_that_is_gone(
    db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if every object had the identity of one that has been freed.
    monkeypatch.setattr(past, "id", lambda thing: 0, raising=False)
    db.execute("CREATE QUERY few AS SELECT car FROM Pos WHERE speed > 10")
    db.past.look()
    db.past.due_s = db.past._soonest_s = math.inf  # nobody looks in between
    before = len(db.past.pictures)
    db.execute("DROP QUERY few; CREATE QUERY few AS SELECT car FROM Pos WHERE speed > 20")
    assert len(db.past.pictures) == before
    db.past.look()
    assert len(db.past.pictures) == before + 1


def test_looking_takes_a_share_of_the_time(db: Connection) -> None:
    began_s = time.monotonic()
    query = db.query("SELECT car FROM Pos WHERE speed > 10 AND car % 3 = 1", name="few")
    assert len(db.past.pictures) == 1 and db.past.due_s > began_s
    began_s = time.monotonic()
    db.past._looked_s, db.past._debt_s = began_s, 1.0
    db.past.look()
    assert db.past.due_s > began_s + 0.9 / past.SHARE
    adaptations_of(query.network.working)[0].pin((1, 0))
    assert db.past.due_s > began_s + 0.9 / past.SHARE


def test_a_look_that_fails_ends_no_call_and_is_told_once(
    db: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("no picture")

    with monkeypatch.context() as broken:
        broken.setattr(db.past, "draw", fail)
        for turn in range(3):
            query = db.query(f"SELECT car FROM Pos WHERE speed > {turn}")
            db.past.due_s = 0.0
            db.push("Pos", (1, "A", 60.0), ts=turn)
            assert query.results == 1
        page = Page(db)
    failures = [record.name for record in caplog.records if record.levelname == "ERROR"]
    assert failures == ["minidsms.past", "minidsms.web"]
    page.shown.observer.look()
    assert page.events("graph")["graph"]["nodes"]


def test_the_page_ends_with_the_connection_and_with_stop() -> None:
    db = minidsms.connect()
    shown = db.ui()
    assert db.ui() is shown
    db.close()
    assert shown.is_over
    shown._thread.join()
    with pytest.raises(ClosedError):
        db.ui()
    with minidsms.connect() as other, other.ui() as shown:
        shown.stop()
        again = other.ui()
        assert again is not shown and not again.is_over


def test_a_port_that_is_taken_is_an_error(db: Connection) -> None:
    taken = db.ui().port
    with minidsms.connect() as other, pytest.raises(Error, match="cannot be opened"):
        other.ui(port=taken)


def test_nothing_of_it_is_loaded_unasked() -> None:
    program = (
        "import sys, minidsms; db = minidsms.connect(); db.execute('CREATE STREAM S (v INTEGER)'); "
        "import minidsms.shell.main; minidsms.shell.main._parser(); "
        "print([m for m in sys.modules if m.split('.')[0] in ('starlette', 'uvicorn', 'asyncio', 'prometheus_client')"
        " or m.startswith('minidsms.web.s')])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"
