"""WITH: common tables mean what views of the same text mean, and hide what else is called so."""

from __future__ import annotations

import re

import pytest

import minidsms
from minidsms.cql import bound
from minidsms.cql.binder import bind
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query
from minidsms.cql.session import tables_named
from minidsms.statements.constant_rows import tables_read
from minidsms.testing.generators import random_case
from minidsms.testing.grammar import Options
from minidsms.testing.user_definitions import create_all
from tests.cql.catalogs import bind_text, small_catalog, with_view
from tests.seeds import seeds


def meaning(text: str, catalog: Catalog) -> str:
    """The bound nodes, written out but for their places in the text."""
    return re.sub(r"span=\(\d+, \d+\)", "", repr(bind(parse_query(text), catalog, text).node))


def windows(node: bound.Node) -> list[bound.Window]:
    found = [window for child in node.inputs for window in windows(child)]
    return [*found, node] if isinstance(node, bound.Window) else found


@pytest.mark.parametrize("seed", seeds(0, 400, 5))
def test_they_mean_what_views_mean(seed: int) -> None:
    case = random_case(seed, Options(forms=False))
    views = [text.split(maxsplit=2)[2] for text in case.declarations if text.startswith("CREATE VIEW")]
    if not views or case.query.startswith("WITH"):
        return
    db = minidsms.connect()
    create_all(db)
    for text in case.declarations:
        db.execute(text)
    tables = [f"{name} AS ({body})" for name, body in (view.split(" AS ", 1) for view in views)]
    text = f"WITH {', '.join(tables)} {case.query}"
    assert meaning(text, db.catalog) == meaning(case.query, db.catalog)
    expanded = print_query(bind(parse_query(text), db.catalog, text).expanded)
    assert meaning(expanded, db.catalog) == meaning(case.query, db.catalog)
    found = bind(parse_query(text), db.catalog, text)
    read = bind(parse_query(case.query), db.catalog, case.query)
    assert {*found.streams} == {*read.streams} and {*found.relations} == {*read.relations}
    assert {name.lower() for name in (*found.streams, *found.relations)} == tables_read(parse_query(text), db.catalog)


def test_a_common_table_is_one_node_however_often_it_is_named() -> None:
    found = bind_text("WITH x AS (SELECT a FROM S [ROWS 5]) SELECT l.a FROM x AS l, x AS r WHERE l.a = r.a").node
    assert len({id(node) for node in windows(found)}) == 1


def test_it_hides_streams_and_views_behind_it_and_not_in_itself() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V AS SELECT b FROM S [ROWS 1]")
    text = "WITH S1 AS (SELECT a FROM S1 [ROWS 2]), V AS (SELECT a AS w FROM S1) SELECT w FROM V"
    plain = "SELECT w FROM (SELECT a AS w FROM (SELECT a FROM S1 [ROWS 2])) AS V"
    assert meaning(text, catalog) == meaning(plain, catalog)
    assert tables_named(parse_query(text)) == ["s1"]


def test_the_same_text_inside_and_outside_is_not_the_same_table() -> None:
    inner = "SELECT a FROM S"
    text = f"SELECT * FROM (WITH S AS (SELECT c AS a FROM S [ROWS 1]) SELECT a FROM ({inner}) z) x, ({inner}) y"
    assert {node.spec.rows for node in windows(bind_text(text).node)} == {1, None}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("WITH x AS (SELECT a FROM y), y AS (SELECT a FROM S) SELECT a FROM x", "unknown stream, relation or view"),
        ("WITH x (p, q) AS (SELECT a FROM S) SELECT p FROM x", "2 column names for 1 column"),
        ("SELECT a FROM S WHERE a IN (WITH x AS (SELECT b FROM S1 WHERE b = S.a) SELECT b FROM x)", "S"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CqlError, match=reason):
        bind_text(text)


def test_a_stream_that_only_a_common_table_of_its_name_hides_may_be_dropped() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (a INTEGER); CREATE STREAM T (a INTEGER)")
    db.execute("CREATE VIEW V AS WITH S AS (SELECT a FROM T [ROWS 1]) SELECT a FROM S")
    db.execute("DROP STREAM S")
    with pytest.raises(CqlError, match="used by view V"):
        db.execute("DROP STREAM T")


@pytest.mark.parametrize("query", ["VALUES (1), (2)", "SELECT UNNEST([1, 2])", "SELECT * FROM (VALUES (1), (2)) AS w"])
def test_what_only_a_table_that_nobody_reads_names_is_not_read(query: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER); CREATE VIEW V AS SELECT a FROM S")
        text = f"WITH w AS (SELECT a FROM S), x AS (SELECT a FROM w UNION ALL SELECT a FROM V) {query}"
        assert list(db.execute(text)) == [(1,), (2,)]
        with pytest.raises(CqlError, match="never changes"):
            db.query(text)
        with pytest.raises(CqlError, match='unknown column "b"'):
            db.execute(f"WITH w AS (SELECT b FROM S) {query}")
        reads = db.query(f"{text} UNION ALL SELECT a FROM w")
        db.push("S", [(5,)], ts=1)
        db.advance(1)
        assert sorted(change.row for change in reads.fetch()) == [(1,), (2,), (5,)]
