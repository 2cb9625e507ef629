"""At the end of the sources windows with SLIDE show the last of what came, each query's by its own (semantics T4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import minidsms
from minidsms import Change

ROWS = [(1, 5), (2, 17), (3, 23)]
TUMBLING = "SELECT RSTREAM(COUNT(*)) FROM S [RANGE 10 SLIDE 10]"
NESTED = "SELECT RSTREAM(MAX(n)) FROM (SELECT ISTREAM(COUNT(*) AS n) FROM S [RANGE 4 SLIDE 4]) [RANGE 30 SLIDE 15]"
PLAIN = "SELECT COUNT(*) FROM S [RANGE 5]"


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "s.csv"
    path.write_text("v,at\n" + "".join(f"{v},{at}\n" for v, at in ROWS))
    yield path


def from_file(path: Path, *queries: str, **settings: str) -> list[list[Change]]:
    db = minidsms.connect(**settings)
    db.execute(f"CREATE STREAM S (v INTEGER, at INTEGER) TIMESTAMP BY at FROM '{path}'")
    running = [db.query(text) for text in queries]
    db.run()
    return [query.fetch() for query in running]


def pushed(query: str, until: int) -> list[Change]:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER, at INTEGER) TIMESTAMP BY at")
    running = db.query(query)
    db.push("S", ROWS)
    db.advance(until)
    return running.fetch()


@pytest.mark.parametrize(("query", "end"), [(TUMBLING, 30), (NESTED, 30), (PLAIN, 23)])
@pytest.mark.parametrize("sharing", ["on", "off"])
def test_a_query_ends_where_its_windows_do_whatever_runs_beside_it(
    path: Path, query: str, end: int, sharing: str
) -> None:
    expected = pushed(query, end)
    assert expected
    assert from_file(path, query, sharing=sharing) == [expected]
    others = [text for text in (TUMBLING, NESTED, PLAIN) if text != query]
    assert from_file(path, *others, query, sharing=sharing)[-1] == expected


def test_the_last_window_comes_to_iteration_and_to_sinks(path: Path, tmp_path: Path) -> None:
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (v INTEGER, at INTEGER) TIMESTAMP BY at FROM '{path}'")
    query = db.query(TUMBLING)
    db.execute(f"CREATE QUERY written AS {TUMBLING} INTO '{tmp_path / 'out.csv'}'")
    assert [change.ts for change in query] == [10, 20, 30]
    db.run()
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 4


def test_a_run_up_to_an_instant_ends_nothing(path: Path) -> None:
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (v INTEGER, at INTEGER) TIMESTAMP BY at FROM '{path}'")
    query = db.query(TUMBLING)
    db.run(until=25)
    assert [change.ts for change in query.fetch()] == [10, 20]
    db.run()
    assert [change.ts for change in query.fetch()] == [30]


def test_a_join_with_a_stream_that_nobody_feeds_ends_with_the_run_of_a_script(path: Path) -> None:
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (v INTEGER, at INTEGER) TIMESTAMP BY at FROM '{path}'")
    db.execute("CREATE STREAM T (w INTEGER)")
    query = db.query("SELECT RSTREAM(v) FROM S [RANGE 10 SLIDE 10] LEFT JOIN T [NOW] ON v = w")
    db.run()
    assert query.fetch() == []
    db.finish_unfed()
    assert [change.ts for change in query.fetch()] == [10, 20, 30]


@pytest.mark.parametrize("beside", [[], [PLAIN, TUMBLING]])
def test_a_family_of_queries_ends_as_its_queries_do(tmp_path: Path, beside: list[str]) -> None:
    path = tmp_path / "family.csv"
    path.write_text("v,at\n" + "".join(f"{at % 12},{at}\n" for at in range(1, 24)))
    family = [f"SELECT v, COUNT(*) FROM S [RANGE 10 SLIDE 10] WHERE v = {c} GROUP BY v" for c in range(12)]
    found = from_file(path, *family, *beside, sharing="on")
    assert found == from_file(path, *family, *beside, sharing="off")
    assert found[3][-1] == Change(30, -1, (3, 1))
