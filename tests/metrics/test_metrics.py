"""What operators are told: metrics for Prometheus and OpenTelemetry, health, log records."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.cql.errors import Error
from minidsms.metrics import Collector, health, observe, open_telemetry, prometheus, serve
from minidsms.metrics.figures import MOST_LABELLED, OTHERS, figures

HOSTILE = 'a"b\\c\nd{e="f"} 1'


@pytest.fixture
def db() -> Iterator[Connection]:
    with minidsms.connect(memory_limit="500 MB") as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        db.query("SELECT v * 3074457345618258603 AS d FROM S", name="q")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.advance(2)
        yield db


def value(db: Connection, name: str, label: str = "") -> float:
    return next(metric for metric in figures(db) if metric.name == name).values[label]


def test_figures_are_those_of_the_engine(db: Connection) -> None:
    assert (value(db, "elements_accepted", "S"), value(db, "answers", "q"), value(db, "answers_waiting", "q")) == (
        2,
        2,
        2,
    )
    db.queries["q"].fetch()
    assert (value(db, "answers", "q"), value(db, "answers_waiting", "q")) == (2, 0)
    assert value(db, "memory") == db.nbytes and value(db, "memory_limit") == 500 * 2**20
    assert value(db, "queries") == 1 and value(db, "query_failed", "q") == 0


def test_queries_beyond_the_labelled_ones_are_told_as_one(db: Connection) -> None:
    for i in range(MOST_LABELLED + 20):
        db.query(f"SELECT v FROM S WHERE v = {i}")
    db.push("S", [(MOST_LABELLED + 5,)], ts=10)
    told = next(metric for metric in figures(db) if metric.name == "answers").values
    assert len(told) == MOST_LABELLED + 1 and told[OTHERS] == 1


def test_prometheus_reads_what_its_client_writes(db: Connection) -> None:
    client = pytest.importorskip("prometheus_client")
    from prometheus_client.parser import text_string_to_metric_families

    db.query("SELECT v FROM S", name=HOSTILE)
    registry = client.CollectorRegistry()
    registry.register(Collector(db))
    text = client.generate_latest(registry).decode()
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    found = {(s.name, s.labels.get("query", s.labels.get("input", ""))): s.value for s in samples}
    assert found["minidsms_elements_accepted_total", "S"] == 2
    assert found["minidsms_answers_total", HOSTILE] == 0
    assert found["minidsms_lag_seconds", "q"] == 0
    assert found["minidsms_memory_bytes", ""] > 0


def test_metrics_are_served_on_the_loopback_until_stopped(db: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prometheus_client")
    stop = serve(db, port=0)
    stop()
    with pytest.raises(Error, match="cannot be opened"):
        serve(db, address="203.0.113.1")
    with pytest.raises(Error, match="port 70000 cannot be opened"):
        serve(db, port=70000)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(Error, match="can't start new thread"):
        serve(db, port=0)


def test_clients_that_ask_for_nothing_are_few_and_hung_up_on(
    db: Connection, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each had a thread for good, also once the server had ended."""
    pytest.importorskip("prometheus_client")
    monkeypatch.setattr(prometheus, "MOST_CLIENTS", 5)
    threads = set(threading.enumerate())

    def silent() -> socket.socket:
        client = socket.create_connection(("127.0.0.1", port))
        client.settimeout(60)
        client.sendall(b"GET /met")
        return client

    for patience_s in (0.05, 3600.0):
        monkeypatch.setattr(prometheus, "_PATIENCE_S", patience_s)
        stop: Any = serve(db, port=0)
        port = stop._server.server_port
        clients = [silent() for _ in range(9)]
        for client in clients if patience_s < 1 else clients[5:]:
            with contextlib.suppress(ConnectionError):
                assert client.recv(1) == b""
        if patience_s < 1:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                assert b"minidsms_answers_total" in answer.read()
        stop()
        for thread in set(threading.enumerate()) - threads:
            thread.join(60)
        assert set(threading.enumerate()) <= threads
        for client in clients:
            client.close()
    assert "Traceback" not in capfd.readouterr().err


def test_the_page_serves_them_too(db: Connection) -> None:
    pytest.importorskip("prometheus_client")
    pytest.importorskip("uvicorn")
    shown = db.ui()
    for path, wanted in (("metrics", b"minidsms_answers_total"), ("health", b'"status":"ok"')):
        url = f"http://127.0.0.1:{shown.port}/{path}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {shown.guard.token}"})
        with urllib.request.urlopen(request) as answer:
            assert wanted in answer.read()


def test_open_telemetry_observes_the_same(db: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    db.set("memory_limit", None)
    reader = InMemoryMetricReader()
    observe(db, MeterProvider([reader]).get_meter("test"))

    def read() -> dict[str, Any]:
        data: Any = reader.get_metrics_data()
        return {m.name: m for m in data.resource_metrics[0].scope_metrics[0].metrics}

    told = read()
    (point,) = told["minidsms.answers"].data.data_points
    assert (point.value, dict(point.attributes)) == (2, {"query": "q"})
    assert told["minidsms.memory"].unit == "By" and "minidsms.memory_limit" not in told
    db.set("memory_limit", 2**30)
    monkeypatch.setattr(open_telemetry, "_KEPT_S", 0.0)
    assert read()["minidsms.memory_limit"].data.data_points[0].value == 2**30


def test_health_tells_which_queries_have_failed_and_why(db: Connection) -> None:
    assert health(db)["status"] == "ok"
    db.push("S", [(3,)], ts=5)
    db.advance(6)
    told = health(db)
    assert told["status"] == "degraded" and "overflow" in told["failed"]["q"]
    db.close()
    assert health(db) == {"status": "closed"} and figures(db) == []


def test_the_last_checkpoint_is_told(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        assert health(db)["last_checkpoint_s"] is None
        db.checkpoint()
        assert health(db)["last_checkpoint_s"] == value(db, "last_checkpoint") > 0


def test_log_records_tell_of_failures_and_plans(db: Connection, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "minidsms"):
        filters = db.query("SELECT v FROM S WHERE v > 1 AND v % 3 = 1", name="filters")
        from minidsms.streamon.loop import adaptations_of

        adaptations_of(filters.network.working)[0].pin((1, 0))
        db.push("S", [(3,)], ts=5)
        db.advance(6)
        filters.close()
    told = [(r.name, r.levelname, r.getMessage()) for r in caplog.records]
    assert ("minidsms.queries", "DEBUG", "query filters: registered") in told
    assert any(n == "minidsms.plans" and level == "INFO" and "F1, F2 -> F2, F1" in text for n, level, text in told)
    assert any(
        n == "minidsms.queries" and level == "ERROR" and text.startswith("query q: failed at 5")
        for n, level, text in told
    )
    assert told[-1] == ("minidsms.queries", "DEBUG", "query filters: closed")


def test_nothing_is_logged_unasked() -> None:
    program = (
        "import minidsms; db = minidsms.connect(); db.execute('CREATE STREAM S (v INTEGER)'); db.past.draw = None; "
        "q = db.query('SELECT v * 3074457345618258603 AS d FROM S'); db.push('S', [(3,)], ts=1); "
        "db.advance(2); print(q.state)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("failed\n", "")


def test_the_dashboard_asks_for_metrics_that_there_are(db: Connection) -> None:
    client = pytest.importorskip("prometheus_client")
    registry = client.CollectorRegistry()
    registry.register(Collector(db))
    there = set(re.findall(r"^(minidsms_\w+)", client.generate_latest(registry).decode(), re.MULTILINE))
    text = (Path(__file__).parents[2] / "docs" / "grafana.json").read_text()
    asked = set(re.findall(r"minidsms_\w+", " ".join(re.findall(r'"expr": "([^"]*)"', text))))
    assert len(asked) > 10 and asked <= there
