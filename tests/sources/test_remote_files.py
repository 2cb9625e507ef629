"""Files behind https and in S3, from a server of this machine: read alike, gone on with, and refused in safe mode."""

from __future__ import annotations

import contextlib
import gzip
import io
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pytest
from pyarrow import parquet

import minidsms

ROWS = [(i * 1000, i) for i in range(30_000)]
CSV = b"at,v\n" + b"".join(b"%d,%d\n" % row for row in ROWS)


class Server(ThreadingHTTPServer):
    """Files by path, over HTTP as web servers and S3 speak it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.cuts: list[int | None] = []
        self.changes = 0
        self.knows_ranges = True
        self.version = 1
        self.headers: list[Any] = []

    @property
    def place(self) -> str:
        """Its host and port."""
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """HEAD, GET with ranges, and the list of a bucket."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        """Nothing."""

    def do_HEAD(self) -> None:
        """As GET."""
        self.do_GET()

    def do_GET(self) -> None:
        """The file, or a part of it."""
        address = urlsplit(self.path)
        path, asked = unquote(address.path), self.headers.get("Range")
        self.server.headers.append(self.headers)
        if "list-type=2" in address.query:
            return self._list(path.strip("/"), parse_qs(address.query).get("prefix", [""])[0])
        self.server.asked.append((path, asked))
        if path == "/moved":
            return self._answer(302, b"", {"Location": "http://127.0.0.1:1/elsewhere"})
        content = self.server.files.get(path)
        if content is None:
            return self._answer(404, b"")
        given = {"ETag": f'"{self.server.version}"', "Accept-Ranges": "bytes"}
        if asked is None or not self.server.knows_ranges:
            return self._answer(200, content, given)
        start, _, end = asked.removeprefix("bytes=").partition("-")
        last = min(int(end or len(content)), len(content) - 1)
        given["Content-Range"] = f"bytes {start}-{last}/{len(content)}"
        return self._answer(206, content[int(start) : last + 1], given)

    def _list(self, bucket: str, prefix: str) -> None:
        keys = (path.removeprefix(f"/{bucket}/") for path in self.server.files)
        found = "".join(
            f"<Contents><Key>{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys
            if key.startswith(prefix)
        )
        return self._answer(200, f"<ListBucketResult>{found}</ListBucketResult>".encode(), {})

    def _answer(self, code: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = self.server.cuts.pop(0) if self.server.cuts else None
        self.wfile.write(content[:cut])
        if cut is not None:
            self.close_connection = True
            self.server.version += self.server.changes


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def read(place: str, options: str = "", **given: Any) -> list[tuple[int, int]]:
    """The rows of a file."""
    with minidsms.connect(**given) as db:
        written = f"WITH ({options})" if options else ""
        db.execute(f"CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at FROM '{place}' {written}")
        q = db.query("SELECT v FROM S")
        db.run()
        return [(ts, *row) for ts, _, row in q.fetch()]


def as_parquet() -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table({"at": [at for at, _ in ROWS], "v": [v for _, v in ROWS]}), file)
    return file.getvalue()


FILES = {
    "a.csv": CSV,
    "a.csv.gz": gzip.compress(CSV),
    "a.csv.zst": pa.compress(CSV, "zstd", asbytes=True),
    "a.parquet": as_parquet(),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_alike_over_http_and_from_s3(server: Server, name: str) -> None:
    server.files[f"/bucket/{name}"] = FILES[name]
    assert read(f"http://{server.place}/bucket/{name}") == ROWS
    assert read(f"s3://bucket/{name}", s3(server)) == ROWS


def s3(server: Server) -> str:
    """The options that lead to the server."""
    keys = "`s3.access_key` = 'k', `s3.secret_key` = 's'"
    return f"`s3.endpoint_override` = '{server.place}', `s3.scheme` = 'http', `s3.region` = 'x', {keys}"


def test_what_a_pattern_or_a_folder_names_in_s3_is_read_in_the_order_of_names(server: Server) -> None:
    for i, name in enumerate(("in/a.csv", "in/d.csv", "in/sub/_c.csv", "in/sub/e.csv", "other/f.csv")):
        server.files[f"/bucket/{name}"] = b"at,v\n%d,%d\n" % (i, i)
    for place, found in {
        "in/*.csv": [0, 1],
        "in/**/*.csv": [0, 1, 2, 3],
        "in/": [0, 1, 3],
        "*/?.csv": [0, 1, 4],
    }.items():
        assert [v for _, v in read(f"s3://bucket/{place}", s3(server))] == found, place
    with pytest.raises(minidsms.Error, match="no file fits"):
        read("s3://bucket/in/*.parquet", s3(server))


def test_a_user_in_an_address_is_told_to_the_server_and_the_password_to_nobody_else(server: Server) -> None:
    server.files["/a.csv"] = b"at,v\n1,1\nx,2\n"
    place = f"http://ann:p%40ss@{server.place}/a.csv"
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at FROM '{place}'")
        db.run()
        told = f"{db.execute('SHOW SOURCES')}{list(db.stream_input('S').rejected)}"
        with pytest.raises(minidsms.Error) as caught:
            db.feed("S", place.replace("/a.", "/b."))
    assert server.headers[0]["Authorization"] == "Basic YW5uOnBAc3M="
    assert "p%40ss" not in told + str(caught.value) and told.count("ann:***@127") == 2


def test_an_address_that_cannot_be_taken_apart_shows_no_part_of_its_password() -> None:
    for place in ("https://ann:se/cret@host/a.csv", "s3://key:secret@bucket/a.csv"):
        with pytest.raises(minidsms.Error) as caught:
            read(place)
        assert "cret" not in str(caught.value) and "help: " in str(caught.value)


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_where_a_connection_breaks_off_the_rest_is_asked_for(server: Server, knows_ranges: bool) -> None:
    server.files["/a.csv"], server.knows_ranges = CSV, knows_ranges
    server.cuts = [None, 100_000, 50_000]
    assert read(f"http://{server.place}/a.csv") == ROWS
    second = "bytes=150000-" if knows_ranges else "bytes=100000-"
    assert [asked for _, asked in server.asked][1:3] == [None, "bytes=100000-"]
    assert [asked for _, asked in server.asked][3] == second


def test_a_file_that_changes_while_it_is_read_is_an_error(server: Server) -> None:
    server.files["/a.csv"], server.cuts, server.changes = CSV, [None, 100_000], 1
    with pytest.raises(minidsms.Error, match="has changed"):
        read(f"http://{server.place}/a.csv")


def test_a_folder_goes_on_where_it_was_in_a_file_of_the_web(server: Server, tmp_path: Path) -> None:
    server.files["/a.csv"] = CSV
    seen: list[int] = []
    for until in (5_000_000, None):
        with minidsms.connect(tmp_path / "db") as db:
            place = f"http://{server.place}/a.csv"
            db.execute(f"CREATE STREAM IF NOT EXISTS S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at FROM '{place}'")
            db.execute("CREATE QUERY IF NOT EXISTS q AS SELECT v FROM S")
            db.run(until)
            seen += [row[0] for _, _, row in db.queries["q"].fetch()]
    assert seen == [v for _, v in ROWS]


@pytest.mark.parametrize(
    ("place", "options", "reason"),
    [
        ("http://example.org/a.csv", "", "not on this machine's loopback"),
        ("s3://b/a.csv", "`s3.endpoint_override` = 'http://example.org'", "not on this machine's loopback"),
        ("s3://b/a.csv", "`s3.colour` = 'red'", "colour"),
        ("https://127.0.0.1:1/a.csv", "", "cannot read"),
        ("{}/none.csv", "", "no file"),
        ("{}/moved", "", "is elsewhere now"),
        ("{}/a.duckdb", "FORMAT duckdb", "on this machine"),
        ("ftp://127.0.0.1/a.csv", "", "there is no source"),
        ("http://[::1/a.csv", "", "is no address"),
        ("https://127.0.0.1:abc/a.csv", "", "is no address"),
        ("https://127.0.0.1 :1/a.csv", "", "control characters"),
        ("s3://b/a.csv", "`s3.endpoint_override` = 'http://[::1'", "is no address"),
    ],
)
def test_what_cannot_be_read_is_told(server: Server, place: str, options: str, reason: str) -> None:
    is_format = options.startswith("FORMAT")
    with minidsms.connect() as db, pytest.raises(minidsms.Error, match=reason):
        written = options if is_format or not options else f"WITH ({options})"
        place = place.format(f"http://{server.place}")
        db.execute(f"CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at FROM '{place}' {written}")


@pytest.mark.parametrize(
    "answer",
    [b"\x1b[2J\xff", b"HTTP/9 200 OK\r\n\r\n", b"HTTP/1.1 99999 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a" * 70_000],
    ids=["no answer", "a version unknown", "a status unknown", "a long line"],
)
def test_an_answer_that_is_not_http_is_told_printable_and_short(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(minidsms.Error, match="cannot read") as error:
            read(f"http://127.0.0.1:{server.getsockname()[1]}/a.csv")
        thread.join()
    assert all(c.isprintable() or c == "\n" for c in str(error.value))
    assert len(str(error.value)) < 1000


def test_headers_are_sent_to_the_server_that_was_named(server: Server) -> None:
    server.files["/a.csv"] = CSV
    assert read(f"http://{server.place}/a.csv", "`http.X-Key` = 'seven'") == ROWS
    assert {headers["X-Key"] for headers in server.headers} == {"seven"}


def test_safe_mode_reads_only_below_the_addresses_it_was_given(server: Server) -> None:
    server.files["/open/a.csv"] = server.files["/a.csv"] = CSV
    here = f"http://{server.place}"
    for allowed in ((), ("/tmp",), (f"{here}/open2",), (f"https://{server.place}/open",)):
        with pytest.raises(minidsms.Error, match="safe mode"):
            read(f"{here}/open/a.csv", safe=True, allowed_paths=allowed)
    assert read(f"{here}/open/a.csv", safe=True, allowed_paths=(f"{here}/open/",)) == ROWS
    for path in ("/a.csv", "/open/../a.csv", "/open/%2e%2e/a.csv", "/openly.csv"):
        with pytest.raises(minidsms.Error, match="safe mode"):
            read(here + path, safe=True, allowed_paths=(f"{here}/open",))
    with pytest.raises(minidsms.Error, match="left to the program"):
        read("s3://bucket/a.csv", s3(server), safe=True, allowed_paths=("s3://bucket/",))
    assert all(path.startswith("/open/") for path, _ in server.asked)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_https_is_read_where_the_certificate_is_known_and_refused_elsewhere(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-keyout",
        key,
        "-out",
        certificate,
    ]
    subprocess.run(
        ["openssl", "req", "-x509", *made, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.files["/a.csv"] = CSV
    with pytest.raises(minidsms.Error, match="certificate verify failed"):
        read(f"https://{server.place}/a.csv")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert read(f"https://{server.place}/a.csv") == ROWS
