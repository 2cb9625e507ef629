"""The NEXMark example: every query of the file against the definition, as the command runs it."""

from __future__ import annotations

import json
import runpy
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from minidsms.cql import syntax
from minidsms.cql.binder import bind, relation_def, stream_def, view_def
from minidsms.cql.catalog import Catalog
from minidsms.cql.parser import parse
from minidsms.elements import Type
from minidsms.plan.reading import end_of
from minidsms.shell.main import main
from minidsms.testing.compare import Answer, difference_of
from minidsms.testing.definition import answer
from minidsms.testing.history import History

EXAMPLE = Path(__file__).parent.parent / "examples" / "nexmark"
TEXT = (EXAMPLE / "nexmark.cql").read_text()
TABLES = runpy.run_path(str(EXAMPLE / "generate.py"))["tables"]()
STATEMENTS = list(parse(TEXT))
QUERIES = {s.name: s for s in STATEMENTS if isinstance(s, syntax.CreateQuery)}
LAST = max(row[-1] for name in ("person", "auction", "bid") for row in TABLES[name][1:])


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what the example writes, as JSON lines."""
    folder = tmp_path_factory.mktemp("nexmark")
    shutil.copytree(EXAMPLE / "data", folder / "data")
    (folder / "out").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        arguments = ["run", str(EXAMPLE / "nexmark.cql"), "-o", "out", "--format", "json", "--quiet"]
        assert main(arguments) == 0
    return folder / "out"


def declared() -> Catalog:
    """The file's streams, relations and views."""
    catalog = Catalog()
    for statement in STATEMENTS:
        match statement:
            case syntax.CreateStream(name=name):
                catalog.streams[name.lower()] = stream_def(statement, catalog, TEXT)
            case syntax.CreateRelation(name=name):
                catalog.relations[name.lower()] = relation_def(statement, catalog, TEXT)
            case syntax.CreateView(name=name):
                catalog.views[name.lower()] = view_def(statement, catalog, TEXT)
            case _:
                pass
    return catalog


def history() -> History:
    streams: dict[str, list[Any]] = {n: [(r[-1], r) for r in TABLES[n][1:]] for n in ("person", "auction", "bid")}
    # A relation's file without instants is inserted at the first one.
    return History(streams, {"category": [(0, 1, tuple(row)) for row in TABLES["category"][1:]]})


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_agrees_with_the_definition(name: str, answers: Path) -> None:
    node = bind(QUERIES[name].query, declared(), TEXT).node
    # What the query reads has ended: it is closed up to the last instant of it, or where SLIDE shows that.
    read = [n for n in ("person", "auction", "bid") if n in reads(node)]
    last = max(row[-1] for n in read for row in TABLES[n][1:])
    expected = Answer(tuple(answer(node, history(), end_of(node, last))))
    written = [tuple(json.loads(line).values()) for line in (answers / f"{name}.json").read_text().splitlines()]
    assert expected.changes
    assert (
        difference_of(expected, Answer(tuple((ts, sign, row) for ts, sign, *row in written_rows(written, node)))) == ""
    )


def written_rows(rows: list[tuple[Any, ...]], node: Any) -> list[tuple[Any, ...]]:
    """The rows with FLOAT columns as floats, for JSON writes 5.0 as 5, and instants as milliseconds."""
    rows = [(round(datetime.fromisoformat(ts).timestamp() * 1000), *values) for ts, *values in rows]
    floats = [i + 2 for i, type_ in enumerate(node.schema.types) if type_ is Type.FLOAT]
    return [tuple(float(v) if i in floats and v is not None else v for i, v in enumerate(row)) for row in rows]


def reads(node: Any) -> set[str]:
    """The names of the streams under a node."""
    from minidsms.cql import bound

    if isinstance(node, bound.BaseStream):
        return {node.name.lower()}
    inside = [*node.inputs, *(q for e in node.expressions for q in bound.subqueries(e))]
    return {name for n in inside for name in reads(n)}


def test_the_data_are_those_the_generator_makes(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLE / "generate.py"))["write"](tmp_path)
    for path in (EXAMPLE / "data").iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
