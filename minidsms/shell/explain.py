"""`minidsms explain`: a query, or those of a file, with their defaults written out, and their plans."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from minidsms.cql import syntax
from minidsms.cql.errors import Error
from minidsms.shell.showing import harmless

if TYPE_CHECKING:
    from minidsms.connection import Connection


def explain(options: argparse.Namespace) -> int:
    """Print the plan of a query over the declarations of a file, or those of a file's queries; its sources are not
    opened.
    """
    from minidsms.cql.parser import parse, parse_query
    from minidsms.cql.stream_script import is_stream_script, parse_script
    from minidsms.shell.reading import read_text
    from minidsms.statements import run as statements
    from minidsms.statements.constant_rows import bind_written

    is_file = options.file is None and os.path.isfile(options.query)
    options.file = options.query if is_file else options.file
    text = read_text(options.file) if is_file else options.query
    with _declared(options) as db:
        if not is_file:
            queries = [parse_query(text)]
        else:
            written = [entry.statement for entry in parse_script(text)] if is_stream_script(text) else parse(text)
            queries = [s.query for s in written if isinstance(s, syntax.CreateQuery | syntax.QueryStatement)]
        for query in queries:
            print(harmless(statements.explain(db, bind_written(query, db.catalog, text), text, rules=options.rules)))
        if not queries:
            raise Error(f"{options.query!r} has no query")
    return 0


def _declared(options: argparse.Namespace) -> Connection:
    """A connection with the declarations and settings of the file, if one is named."""
    from minidsms.connection import connect
    from minidsms.cql.parser import parse
    from minidsms.cql.stream_script import is_stream_script
    from minidsms.shell.reading import read_text
    from minidsms.statements import run as statements
    from minidsms.statements.script import connect_for_script, load_script

    text = read_text(options.file) if options.file is not None else ""
    if is_stream_script(text):
        db = connect_for_script()
        load_script(db, text, only_declare=True)
        return db
    db = connect(**({"time_unit": options.time_unit} if options.time_unit else {}))
    for statement in parse(text) if text.strip() else ():
        match statement:
            case syntax.CreateStream() | syntax.CreateRelation():
                statements.carry_out(db, replace(statement, source=None), text)
            case syntax.CreateView() | syntax.SetSetting():
                statements.carry_out(db, statement, text)
            case _:
                pass
    return db
