"""The Linear Road example: every view against the definition, and its answers against a plain recomputation.

Arasu et al., Linear Road (VLDB 2004); Babu 2005, section 6.11.
"""

from __future__ import annotations

import re
import runpy
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from minidsms.cql import syntax
from minidsms.cql.binder import bind
from minidsms.cql.parser import parse_query
from minidsms.cql.stream_script import parse_script
from minidsms.shell.main import main
from minidsms.statements.script import connect_for_script, load_script
from minidsms.testing.compare import Answer, difference_of
from minidsms.testing.definition import answer
from minidsms.testing.history import History
from tests.test_stream_scripts import by_instant

EXAMPLE = Path(__file__).parent.parent / "examples" / "linear_road"
SCRIPT = (EXAMPLE / "linear_road.txt").read_text()
VIEWS = [e.statement.name for e in parse_script(SCRIPT) if isinstance(e.statement, syntax.CreateView)]
CARS, REPORTS = 9, 160
GENERATE = runpy.run_path(str(EXAMPLE / "generate.py"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what the example writes."""
    folder = tmp_path_factory.mktemp("linear_road")
    shutil.copytree(EXAMPLE / "data", folder / "data")
    (folder / "out").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", str(EXAMPLE / "linear_road.txt"), "--quiet"]) == 0
    return folder / "out"


def test_the_data_are_those_the_generator_makes(tmp_path: Path) -> None:
    GENERATE["write"](tmp_path)
    for path in (EXAMPLE / "data").iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_the_example_writes_what_is_expected(answers: Path) -> None:
    names = sorted(path.name for path in (EXAMPLE / "expected").iterdir())
    assert sorted(path.name for path in answers.iterdir()) == names
    for name in names:
        assert by_instant((answers / name).read_text()) == by_instant((EXAMPLE / "expected" / name).read_text()), name


def test_tolls_accidents_and_accounts_are_those_of_a_plain_recomputation(answers: Path) -> None:
    for name, lines in recomputed().items():
        written = (answers / f"{name}.log").read_text()
        assert lines, name
        assert by_instant(written) == by_instant("\n".join(lines)), name


def recomputed() -> dict[str, list[str]]:
    """The lines of most answers, tick by tick from the reports themselves."""
    reports = defaultdict(list)
    for ts, car, speed, xway, lane, direction, xpos in GENERATE["reports"](180):
        reports[ts].append((car, speed, xway, lane, direction, xpos))
    asked = defaultdict(list)
    for ts, car, qid in GENERATE["requests"](180, 60):
        asked[ts].append((car, qid))
    out: dict[str, list[str]] = defaultdict(list)
    positions: dict[int, list[int]] = defaultdict(list)
    last: dict[int, tuple[int, ...]] = {}
    seen: dict[int, int] = {}
    speeds: list[tuple[int, tuple[int, ...], int]] = []
    quotes: dict[tuple[int, ...], int] = {}
    accounts: dict[int, int] = {}
    cars_before: set[tuple[int, ...]] = set()
    tolls_before: Counter[tuple[int, ...]] = Counter()
    crashes_before: set[tuple[int, ...]] = set()
    for t in range(max(max(reports), max(asked)) + 1):
        for car, speed, xway, _, direction, xpos in reports[t]:
            positions[car] = [*positions[car], xpos][-4:]
            last[car], seen[car] = (xway, direction, xpos // 5280), t
            speeds.append((t, last[car], speed))
        cars = {(car, *place) for car, place in last.items() if seen[car] > t - 30}
        entered, left = cars - cars_before, cars_before - cars
        stopped = [c for c in cars if len(positions[c[0]]) == 4 and len(set(positions[c[0]])) == 1]
        at = Counter((c[1:], positions[c[0]][0]) for c in stopped)
        crashes = {place for (place, _), n in at.items() if n > 1}
        affected = {(x, d, s - n if d == 0 else s + n) for x, d, s in crashes for n in range(5)}
        speeds = [s for s in speeds if s[0] > t - 300]
        by_segment: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for _, place, speed in speeds:
            by_segment[place].append(speed)
        volume = Counter(c[1:] for c in cars)
        slow = {place for place, all_ in by_segment.items() if sum(all_) / len(all_) < 40}
        tolls = {p: 2 * (n - 50) ** 2 for p, n in volume.items() if n > 50 and p in slow and p not in affected}
        out["accident"] += [f"[{t}]:+:{c[0]}, {c[3]}" for c in entered if c[1:] in affected]
        out["crash"] += [f"[{t}]:+:{x}, {d}, {s}" for x, d, s in crashes - crashes_before]
        out["crash"] += [f"[{t}]:-:{x}, {d}, {s}" for x, d, s in crashes_before - crashes]
        for c in entered:
            if c[1:] in tolls:
                quotes[c] = tolls[c[1:]]
                out["toll"].append(f"[{t}]:+:{c[0]}, {c[3]}, {quotes[c]}")
        for c in left:
            if c in quotes:
                before = accounts.get(c[0])
                out["account"] += [] if before is None else [f"[{t}]:-:{c[0]}, {before}"]
                accounts[c[0]] = (before or 0) + quotes[c]
                out["account"].append(f"[{t}]:+:{c[0]}, {accounts[c[0]]}")
                out["charge"].append(f"[{t}]:+:{c[0]}, {c[3]}, {quotes[c]}")
        out["balance"] += [f"[{t}]:+:{qid}, {car}, {accounts[car]}" for car, qid in asked[t] if car in accounts]
        rows = Counter((*p, toll) for p, toll in tolls.items())
        out["segment_toll"] += [f"[{t}]:+:{', '.join(map(str, r))}" for r in rows - tolls_before]
        out["segment_toll"] += [f"[{t}]:-:{', '.join(map(str, r))}" for r in tolls_before - rows]
        cars_before, crashes_before, tolls_before = cars, crashes, rows
    return out


def small_history() -> tuple[str, History, dict[str, list[tuple[Any, ...]]]]:
    """The script with fewer cars to a crowd, and the first reports of a few cars."""
    text = SCRIPT.replace("cars > 50", "cars > 1").replace("cars - 50", "cars - 1").replace("5 Minutes", "2 Minutes")
    fed = {"CarLocStr": GENERATE["reports"](CARS)[:REPORTS], "BalanceReq": GENERATE["requests"](CARS, 400)}
    history = History(
        {name.lower(): [(row[0], row[1:]) for row in rows] for name, rows in fed.items()},
        {"upstream": [(0, 1, (n,)) for n in range(5)]},
        tick_ns=1_000_000_000,
    )
    return text, history, fed


def views() -> list[Any]:
    """Every view; those that others stand on, and so are checked with them, only in the long run."""
    declared = SCRIPT.split("# What is asked")[0]
    inner = {view for view in VIEWS if len(re.findall(rf"\b{view}\b", declared)) > 1}
    return [pytest.param(view, marks=pytest.mark.long) if view in inner else view for view in VIEWS]


@pytest.mark.parametrize("view", views())
def test_every_view_agrees_with_the_definition(view: str) -> None:
    text, history, fed = small_history()
    until = fed["CarLocStr"][-1][0]
    with connect_for_script() as db:
        load_script(db, text, only_declare=True)
        node = bind(parse_query(f"select * from {view}"), db.catalog, "").node
        query = db.query(f"select * from {view}")
        db.push("Upstream", [(n,) for n in range(5)], ts=0)
        for name, rows in fed.items():
            db.push(name, [row[1:] for row in rows], ts=[row[0] for row in rows])
        db.advance(until)
        got = Answer(tuple((c.ts, c.sign, tuple(c.row)) for c in query.fetch()))
    expected = Answer(tuple(answer(node, history, until)))
    # No one crashes in the other direction.
    assert bool(expected.changes) == (view != "AccUp1")
    assert difference_of(expected, got) == ""
