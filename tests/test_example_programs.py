"""The scripts of examples/: each opens with the question it answers, runs, and checks its own answer."""

from __future__ import annotations

import ast
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
CHECKED = {
    "network_monitoring": ["28000"],
    "intrusion": ["20000"],
    "stocks": ["4000"],
    "sensors": ["6000"],
    "tolls": ["8000"],
    "auctions": ["12000"],
    "clicks": ["6000"],
    "log_watch": ["3000"],
    "frames": ["300"],
    "service": ["--check"],
    "lasting_service": ["--check", "1"],
}
SCRIPTS = sorted(p for p in EXAMPLES.glob("*.py") if "__main__" in p.read_text(encoding="utf-8"))


@pytest.fixture
def example(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The example's module, imported as a script's neighbours are."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module(request.param)
    finally:
        sys.path.remove(str(EXAMPLES))


def test_every_script_is_run_by_the_tests() -> None:
    # These have tests of their own: tests/test_examples.py, tests/spark/test_backfill_example.py.
    assert {p.stem for p in SCRIPTS} == {*CHECKED, "flights", "flights_backfilled"} and len(SCRIPTS) >= 8


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_a_script_opens_with_its_question(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert docstring.split("\n\n")[0].replace("\n", " ").endswith("?")
    assert f"python examples/{path.name}" in docstring


@pytest.mark.parametrize("example", CHECKED, indirect=True)
def test_a_script_finds_its_answer_right(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main(CHECKED[example.__name__]) == 0
    assert "checked: " in capsys.readouterr().out


@pytest.mark.parametrize("example", sorted(set(CHECKED) - {"service", "lasting_service"}), indirect=True)
def test_a_script_would_notice_a_wrong_answer(
    example: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "expected", lambda *_: "something else")
    assert example.main(CHECKED[example.__name__]) == 1
    assert "WRONG: " in capsys.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="no SIGTERM here")
def test_the_service_stops_cleanly_when_it_is_told_to(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "service.py"), "--readings", "0", "--alarms", "0"]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    with subprocess.Popen(
        [*command, "--folder", str(tmp_path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as service:
        assert service.stderr is not None and service.stdout is not None
        assert "readings at port" in service.stderr.readline()
        service.send_signal(signal.SIGTERM)
        assert service.wait(240) == 0
        assert "Reading" in service.stdout.read()
