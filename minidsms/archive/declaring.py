"""Archives as declarations: streams and relations declared like their archives, and read FROM them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from minidsms.archive.demand import everything
from minidsms.archive.format import Archive, archives_in, find
from minidsms.archive.replay_source import ReplaySource, Span, local_tables
from minidsms.cql.catalog import RelationDef, StreamDef
from minidsms.cql.errors import Error, one_line, quoted
from minidsms.elements import Schema
from minidsms.sources.options import Options

if TYPE_CHECKING:
    from minidsms.connection import Connection


def check_fits(archive: Archive, name: str, kind: str, schema: Schema, time_unit: str) -> None:
    """Error where the archive's elements cannot be those of a stream or relation declared so."""
    metadata = archive.metadata
    if metadata.kind != kind:
        raise Error(f"{one_line(name)} is a {kind}, and its archive is one of a {metadata.kind}")
    if metadata.time_unit != time_unit:
        raise Error(
            f"the archive {archive.folder!r} counts in {metadata.time_unit}, the connection in {time_unit}\n"
            f"help: minidsms.connect(time_unit={metadata.time_unit!r})"
        )
    there = {f.name.lower(): f.type for f in metadata.schema}
    for column in schema:
        type_ = there.get(column.name.lower())
        if type_ is None:
            has = one_line(str(metadata.schema))
            raise Error(f"the archive {archive.folder!r} has no column {quoted(column.name)}\nhelp: it has {has}")
        if type_ is not column.type:
            name, own = one_line(name), one_line(column.name)
            raise Error(f"the archive {archive.folder!r} has {own} as {type_}, {name} as {column.type}")


def source_of(
    folder: str, name: str, kind: str, schema: Schema, time_unit: str, options: Mapping[str, Any]
) -> ReplaySource:
    """FROM 'folder' FORMAT archive: everything the archive of this name holds now, as a bounded source.

    options: as_of, a commit or a time.
    """
    given = Options(options, "an archive")
    as_of = options.get("as_of")
    as_of = given.count("as_of", None, least=0) if isinstance(as_of, int) else given.text("as_of", None)
    given.done()
    archive = find(folder, name, as_of)
    check_fits(archive, name, kind, schema, time_unit)
    end = max((f.last_arrival + 1 for f in archive.files()), default=0)
    return ReplaySource(archive, schema, Span(None, None, 0, end), everything(schema), local_tables)


def declare(db: Connection, folder: str, except_: frozenset[str] = frozenset()) -> list[str]:
    """Declare the streams and relations of a folder of archives in a connection, but those named (in lower case);
    their names. Archives of queries are declared too, where their columns have names of their own.
    """
    names = []
    for archive in archives_in(folder):
        metadata = archive.metadata
        columns = [name.lower() for name in metadata.schema.names]
        if metadata.name.lower() in except_ or not columns or len(set(columns)) < len(columns):
            continue
        if metadata.kind == "stream":
            db.add_stream(StreamDef(metadata.name, metadata.schema, metadata.timestamp_by, key=metadata.key))
        else:
            db.add_relation(RelationDef(metadata.name, metadata.schema, metadata.key))
        names.append(metadata.name)
    return names
