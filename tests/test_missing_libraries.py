"""What is not installed with minidsms is asked for by name, with the way to install it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

import pytest

import minidsms
from minidsms.metrics import observe, serve
from minidsms.shell.main import main


def answer() -> minidsms.Query:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER)")
    return db.query("SELECT v FROM S [NOW]")


@pytest.mark.parametrize(
    ("module", "call", "told"),
    [
        ("pandas", lambda: answer().df(), r"df\(\) needs the package pandas.*\nhelp: pip install pandas"),
        ("polars", lambda: answer().pl(), r"pl\(\) needs the package polars.*\nhelp: pip install polars"),
        ("pandas", lambda: answer().snapshot().df(), "pip install pandas"),
        ("prometheus_client", lambda: serve(minidsms.connect(), port=0), r"'minidsms\[metrics\]'"),
        ("opentelemetry", lambda: observe(minidsms.connect()), r"'minidsms\[metrics\]'"),
        ("pyspark", lambda: importlib.import_module("minidsms.spark"), r"Spark needs.*pyspark.*'minidsms\[spark\]'"),
        ("pyspark", lambda: minidsms.connect().offload("SELECT v FROM S", "data"), r"'minidsms\[spark\]'"),
    ],
)
def test_the_missing_library_is_named(
    module: str, call: Callable[[], object], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(module, monkeypatch)
    with pytest.raises(minidsms.Error, match=f"(?s){told}"):
        call()


@pytest.mark.parametrize("command", [["offload", "SELECT v FROM S", "data"], ["ingest", "a.csv", "data"]])
def test_commands_that_need_spark_say_so(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hide("pyspark", monkeypatch)
    assert main([*command, *(["--stream", "CREATE STREAM S (v INTEGER)"] if command[0] == "ingest" else [])]) == 1
    assert "help: pip install 'minidsms[spark]'" in capsys.readouterr().err


def hide(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were not installed."""
    for name in [name for name in sys.modules if name == module or name.startswith((f"{module}.", "minidsms.spark"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
