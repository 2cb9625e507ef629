"""`minidsms ui`, `.ui`, and pages of connections that a folder keeps or that are safe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import minidsms
from minidsms.process.safety import Safety
from minidsms.shell.configuration import Configuration
from minidsms.shell.main import main
from minidsms.shell.session import Session
from tests.shell.sessions import KeptScreen
from tests.web.pages import Page

PROGRAM = [sys.executable, "-m", "minidsms", "ui", "--no-browser"]


def test_the_command_prints_its_url_and_ends_with_an_interrupt(tmp_path: Path) -> None:
    file = tmp_path / "begin.cql"
    file.write_text("CREATE STREAM S (v INTEGER);\nCREATE QUERY big AS SELECT v FROM S WHERE v > 3;\n")
    with subprocess.Popen([*PROGRAM, str(file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout is not None
        url = run.stdout.readline().strip()
        bearer = {"Authorization": f"Bearer {url.partition('token=')[2]}"}
        request = urllib.request.Request(url.partition("?")[0] + "api/answer?query=big", headers=bearer)
        with urllib.request.urlopen(request) as answer:
            assert b'"results":0' in answer.read()
        run.send_signal(signal.SIGINT)
        assert run.wait() == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [("CREATE STREAM S (v INTEGER);\nSELECT w FROM S", "2 | SELECT w"), (None, "cannot read")],
)
def test_a_file_that_cannot_be_run_is_an_error(
    tmp_path: Path, text: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "begin.cql"
    if text is not None:
        file.write_text(text)
    assert main(["ui", "--no-browser", str(file)]) == 1
    done = capsys.readouterr()
    assert said in done.err and done.out == ""


def test_the_shell_opens_the_page_of_its_connection() -> None:
    screen = KeptScreen()
    session = Session(screen, Configuration(), Safety(False), is_interactive=False)
    session.run_text(".ui")
    (said,) = [text for kind, text in screen.said if kind == "note"]
    assert said == session.db.ui().url
    session.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(said)


def test_what_a_page_registers_is_kept_where_a_folder_keeps_the_connection(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        page = Page(db)
        text = "CREATE STREAM S (v INTEGER); CREATE QUERY big AS SELECT v FROM S WHERE v > 3"
        assert page.tell("/api/run", text=text)["error"] is None
        db.push("S", [(1,), (5,)], ts=[1, 2])
        assert [change[3] for change in page.ask("/api/answer", query="big")["changes"]] == [[5]]
    with minidsms.connect(tmp_path / "db") as db:
        assert Page(db).ask("/api/answer", query="big")["results"] == 1


def test_a_page_of_a_safe_connection_touches_no_file(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("v\n1\n")
    with minidsms.connect(safe=True, allowed_paths=[tmp_path / "allowed"]) as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        page = Page(db)
        for path in (os.fspath(tmp_path / "s.csv"), "tcp://127.0.0.1:9"):
            assert page.request("POST", "/api/feed", {"action": "file", "name": "S", "path": path})[0] == 409
        told = page.tell("/api/run", text=f"CREATE QUERY q AS SELECT v FROM S INTO '{tmp_path}/q.csv'")
        assert "safe mode" in told["error"]["text"]
