"""Tables of PostgreSQL, as they are and as they change, from a server that the tests start where one is installed."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.sources import postgres_changes

psycopg = pytest.importorskip("psycopg")
BINARIES = max(glob.glob("/usr/lib/postgresql/*/bin"), default=os.path.dirname(shutil.which("initdb") or ""))
COLUMNS = "id INTEGER, name TEXT, spent FLOAT, active BOOLEAN, at TIMESTAMP"
pytestmark = pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of its own, on a socket in a folder. It does not run as root."""
    folder = Path(tempfile.mkdtemp())
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def run(name: str, *arguments: str) -> None:
        environment = {**os.environ, "HOME": str(folder)}
        subprocess.run(
            [f"{BINARIES}/{name}", "-D", folder / "data", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            **account,
        )

    run("initdb", "--auth=trust", "--username=ann", "--encoding=UTF8", "--no-sync")
    settings = f"-k {folder} -c listen_addresses= -c wal_level=logical -c fsync=off"
    run("pg_ctl", "-w", "-o", settings, "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql://ann@/postgres?host={folder}"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture
def server(address: str) -> Iterator[Any]:
    """A connection to it, and a table."""
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(
            "CREATE TABLE customers (id int PRIMARY KEY, name text, spent numeric, active bool, at timestamptz)"
        )
        server.execute("ALTER TABLE customers REPLICA IDENTITY FULL")
        server.execute("CREATE PUBLICATION shop FOR TABLE customers")
        server.execute(
            "INSERT INTO customers VALUES (1, 'ann', 1.5, true, NULL), (2, E'two\nlines', NULL, false, 'epoch')"
        )
        yield server
        server.execute("DROP TABLE customers; DROP PUBLICATION shop")
        wait_for_readers_to_go(server)


def wait_for_readers_to_go(server: Any) -> None:
    """The server notices a moment later that whoever read a slot has gone."""
    while server.execute("SELECT FROM pg_replication_slots").rowcount:
        server.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT (active OR temporary)"
        )
        time.sleep(0.01)


def rows_of(server: Any) -> list[Any]:
    """The table, as the relation should be."""
    found = server.execute("SELECT id, name, spent::float8, active, extract(epoch FROM at)::int8 * 1000 FROM customers")
    return sorted(found.fetchall())


def read_until(db: minidsms.Connection, q: minidsms.Query, is_reached: Callable[[], bool]) -> None:
    """Read what comes."""
    end_s = time.monotonic() + 60
    while not is_reached():
        assert time.monotonic() < end_s, (q.snapshot(), db.warnings)
        db.run_some()


def test_a_table_is_a_relation_and_a_stream(address: str, server: Any) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION C ({COLUMNS}) FROM '{address}' WITH (table = 'public.customers')")
        db.execute(
            f"CREATE STREAM S (at TIMESTAMP, id INTEGER) TIMESTAMP BY at FROM '{address}' WITH (table = 'Customers')"
        )
        relation, stream = db.query("SELECT * FROM C"), db.query("SELECT id FROM S")
        db.run()
        assert sorted(relation.snapshot()) == rows_of(server)
        assert [(ts, *row) for ts, _, row in stream.fetch()] == [(0, 2)]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_texts_of_a_database_in_another_encoding_are_read(address: str, encoding: str) -> None:
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(f"CREATE DATABASE other ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        there = address.replace("/postgres?", "/other?")
        with psycopg.connect(there, autocommit=True, client_encoding="utf8") as other:
            other.execute("CREATE TABLE t (id int PRIMARY KEY, name text)")
            other.execute("ALTER TABLE t REPLICA IDENTITY FULL")
            other.execute("CREATE PUBLICATION shop FOR TABLE t")
            other.execute("INSERT INTO t VALUES (1, 'café')")
            with minidsms.connect() as db:
                options = "table = 't', publication = 'shop'"
                db.execute(f"CREATE RELATION C (id INTEGER, name TEXT) FROM '{there}' WITH (table = 't')")
                db.execute(f"CREATE RELATION D (id INTEGER, name TEXT) FROM '{there}' WITH ({options})")
                whole, changing = db.query("SELECT * FROM C"), db.query("SELECT * FROM D")
                read_until(db, changing, lambda: changing.snapshot() == [(1, "café")])
                assert whole.snapshot() == [(1, "café")]
                other.execute("UPDATE t SET name = 'thé'")
                read_until(db, changing, lambda: changing.snapshot() == [(1, "thé")])
        wait_for_readers_to_go(server)
        server.execute("DROP DATABASE other WITH (FORCE)")


def test_a_transaction_comes_whole_at_one_instant(address: str, server: Any) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION C ({COLUMNS}) FROM '{address}' WITH (table = 'customers', publication = 'shop')")
        q, total = db.query("SELECT * FROM C"), db.query("SELECT SUM(spent) AS s FROM C")
        read_until(db, q, lambda: len(q.snapshot()) == 2)
        for move in range(3):
            with server.transaction():
                server.execute("UPDATE customers SET spent = coalesce(spent, 0) - 1, name = NULL WHERE id = 1")
                server.execute(f"INSERT INTO customers VALUES ({move + 3}, 'new', 1, NULL, now())")
        server.execute("DELETE FROM customers WHERE id = 2")
        # Four there are after the second transaction, too.
        read_until(db, q, lambda: sorted(row[0] for row in q.snapshot()) == [1, 3, 4, 5])
        assert sorted(row[:4] for row in q.snapshot()) == [row[:4] for row in rows_of(server)]
        assert {row[0] for _, _, row in total.fetch()} <= {None, 1.5}
        assert server.execute("SELECT temporary FROM pg_replication_slots").fetchall() == [(True,)]


def test_a_folder_goes_on_behind_what_it_has_and_the_server_forgets_what_was_pushed(
    address: str, server: Any, tmp_path: Path
) -> None:
    slot = "SELECT confirmed_flush_lsn FROM pg_replication_slots"
    made = ""
    for run in range(4):
        if run:
            server.execute("UPDATE customers SET spent = coalesce(spent, 0) + 1")
            server.execute(f"INSERT INTO customers VALUES ({run + 10}, 'run', {run}, true, 'epoch')")
        with minidsms.connect(tmp_path / "db") as db:
            options = "table = 'customers', publication = 'shop', slot = 'kept'"
            db.execute(f"CREATE RELATION IF NOT EXISTS C ({COLUMNS}) FROM '{address}' WITH ({options})")
            db.execute("CREATE QUERY IF NOT EXISTS q AS SELECT * FROM C")
            q = db.queries["q"]
            read_until(db, q, lambda: sorted(q.snapshot()) == rows_of(server))  # noqa: B023
            if run == 2:  # in the next run the server knows no more of what was pushed last
                made = server.execute(slot).fetchone()[0]
                read_until(db, q, lambda: server.execute(slot).fetchone()[0] != made)  # noqa: B023
            assert not db.warnings and not db.stream_input("C").rejected
    assert made


def test_a_slot_that_somebody_reads_is_waited_for(
    address: str, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = "table = 'customers', publication = 'shop', slot = 'kept', poll = 0.01 SECONDS"
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(f"CREATE RELATION C ({COLUMNS}) FROM '{address}' WITH ({declared})")
        q = db.execute("CREATE QUERY q AS SELECT * FROM C")
        read_until(db, q, lambda: len(q.snapshot()) == 2)
    told = ["-o", "proto_version=1", "-o", "publication_names=shop", "--status-interval=0"]
    reader = subprocess.Popen(
        [f"{BINARIES}/pg_recvlogical", "-d", address, "-S", "kept", "--start", "-f", "-", *told],
        stdout=subprocess.DEVNULL,
    )
    try:
        while not server.execute("SELECT FROM pg_replication_slots WHERE active").rowcount:
            time.sleep(0.01)
        with minidsms.connect(tmp_path / "db") as db:
            monkeypatch.setattr(postgres_changes, "SLOT_S", 0.05)
            with pytest.raises(minidsms.Error, match=r"another connection reads the slot \"kept\".*is active for PID"):
                read_until(db, db.queries["q"], lambda: False)
        monkeypatch.undo()
        with minidsms.connect(tmp_path / "db") as db:
            db.run_some()
            reader.kill()
            server.execute("INSERT INTO customers VALUES (3)")
            q = db.queries["q"]
            read_until(db, q, lambda: len(q.snapshot()) == 3)
    finally:
        reader.kill()
        reader.wait()


@pytest.mark.parametrize(
    ("before", "options", "reason"),
    [
        ("ALTER TABLE customers REPLICA IDENTITY DEFAULT", "publication = 'shop'", "REPLICA IDENTITY FULL"),
        ("", "publication = 'none'", "CREATE PUBLICATION"),
        ("", "publication = 'shop', table = 'none'", "there are: customers"),
        ("ALTER TABLE customers DROP COLUMN at", "", 'no column "at"'),
    ],
)
def test_what_is_missing_is_told_with_the_statement_that_mends_it(
    address: str, server: Any, before: str, options: str, reason: str
) -> None:
    if before:
        server.execute(before)
    with minidsms.connect() as db, pytest.raises(minidsms.Error, match=reason):
        written = ", ".join(filter(None, ["table = 'customers'" if "table" not in options else "", options]))
        db.execute(f"CREATE RELATION C ({COLUMNS}) FROM '{address}' WITH ({written})")


def test_truncate_ends_the_source_and_says_so(address: str, server: Any) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION C ({COLUMNS}) FROM '{address}' WITH (publication = 'shop')")
        q = db.query("SELECT * FROM C")
        read_until(db, q, lambda: len(q.snapshot()) == 2)
        server.execute("INSERT INTO customers VALUES (3); TRUNCATE customers")
        with pytest.raises(minidsms.Error, match="TRUNCATE"):
            read_until(db, q, lambda: False)


def test_another_machine_is_asked_only_where_that_was_asked_for(address: str) -> None:
    with minidsms.connect() as db, pytest.raises(minidsms.Error, match="loopback") as caught:
        db.execute("CREATE RELATION C (id INTEGER) FROM 'postgresql://ann:secret@example.org/shop'")
    assert "secret" not in str(caught.value)
    for wrong in ("se/cret", "se%cret"):
        with minidsms.connect() as db, pytest.raises(minidsms.Error, match="is no address") as caught:
            db.execute(f"CREATE RELATION C (id INTEGER) FROM 'postgresql://ann:{wrong}@127.0.0.1/shop'")
        assert "cret" not in str(caught.value)
    with minidsms.connect(safe=True) as db, pytest.raises(minidsms.Error, match="safe mode"):
        db.execute(f"CREATE RELATION C (id INTEGER) FROM '{address}'")
