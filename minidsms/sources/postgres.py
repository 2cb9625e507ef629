"""Connections to PostgreSQL: addresses, tables, and errors as ours.

Invariant: what crosses a network is encrypted unless something else was asked for, and no password is shown.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from minidsms.cql.errors import Error, quoted
from minidsms.cql.masking import masked
from minidsms.extras import library
from minidsms.sources.addresses import check_loopback, no_address

SCHEMES = ("postgresql", "postgres")
_ENCRYPTED = ("require", "verify-ca", "verify-full")
_SESSION = "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=iso_8601 -c extra_float_digits=1"


def connected(address: str, allow_remote: bool, **more: Any) -> Any:
    """A connection that commits by itself. Error where there is none, or it would cross a network unencrypted."""
    psycopg = library("psycopg", "postgresql://", "postgres")
    shown = masked(address)
    with asking(shown):
        try:
            given = psycopg.conninfo.conninfo_to_dict(address)
        except psycopg.ProgrammingError:  # it tells what could not be read: the password
            raise no_address(address) from None
        if not re.fullmatch("[0-9,]*", str(given.get("port", ""))):
            raise no_address(address)
        if given.get("sslmode") not in _ENCRYPTED:
            for host in str(given.get("hostaddr") or given.get("host") or "localhost").split(","):
                if not host.startswith("/"):
                    check_loopback(host, shown, allow_remote)
        options = " ".join(filter(None, (given.get("options"), _SESSION)))
        cursor = psycopg.ClientCursor
        connection = psycopg.connect(
            **{
                **given,
                "options": options,
                "connect_timeout": given.get("connect_timeout", 10),
                "client_encoding": "utf8",  # of a database without one, or of another, texts would be bytes
            },
            autocommit=True,
            cursor_factory=cursor,
            **more,
        )
    return connection


@contextlib.contextmanager
def asking(shown: str) -> Iterator[None]:
    """What the library or the server refuses is an Error."""
    psycopg = library("psycopg", "postgresql://", "postgres")
    try:
        yield
    except psycopg.Error as error:
        reason = str(error).strip().split("\n")[0][:300]
        raise Error(f"{shown}: {reason}") from None


def table_named(connection: Any, shown: str, table: str | None) -> tuple[str, str]:
    """(schema, name) of a table or view, found as PostgreSQL finds it; without a name, the only one there is."""
    with asking(shown):
        if table is not None:
            found = connection.execute(
                "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE c.oid = to_regclass(%s)",
                [table],
            ).fetchone()
            if found is not None:
                return str(found[0]), str(found[1])
        there = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        ).fetchall()
    if table is None and len(there) == 1:
        return str(there[0][0]), str(there[0][1])
    names = ", ".join(name if schema == "public" else f"{schema}.{name}" for schema, name in there[:30])
    reason = "it is not said which table is meant" if table is None else f"no table {quoted(table)}"
    raise Error(f"{shown}: {reason}\nhelp: WITH (table = 'name'); there are: {names}")


def column_names(connection: Any, shown: str, table: tuple[str, str]) -> list[str]:
    """The columns of a table, in its order."""
    with asking(shown):
        return [c.name for c in connection.execute(f"SELECT * FROM {identifier(*table)} LIMIT 0").description]


def identifier(*names: str) -> str:
    """A name as SQL writes it."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
