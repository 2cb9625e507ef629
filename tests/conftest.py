"""`pytest --rewrite` fills in what golden scripts and the docs' examples expect; the change is then read and judged."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# No test asserts a time: a slow machine, or the first compilation of a kernel, is no failure.
# Every run tries the same examples, so that a change is judged by what it changes; --shuffle draws new ones.
_slowly = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("minidsms", **_slowly, derandomize=True)
settings.register_profile("anew", **_slowly)
settings.load_profile("minidsms")


# Tests have all processors busy already; what one worker compiles the others find.
os.environ.setdefault("MINIDSMS_COMPILE_AHEAD", "0")
# The compiler makes hundreds of thousands of objects for a kernel, hardly any of which is garbage before it is done.
# Hypothesis looks at the clock before and after each collection.
gc.set_threshold(20_000, 10, 10)
gc.disable()  # until the tests are collected: what is made by then stays
# Hundreds of processes read the bytecode that is kept here, whether or not they keep any themselves.
sys.dont_write_bytecode = False


# Spark's workers import what tests define, wherever this process stood when Spark was started.
_ROOT = str(Path(__file__).parent.parent)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))

# A shell lets what runs behind it, and all that this starts, ignore interrupts; some tests are about them.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write what came out into golden scripts and the docs' examples"
    )
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order, with new examples")


class _Examples:
    """Files without examples are not searched for them: one module in fifteen has some, and every worker searches."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        return [one for one in found if not isinstance(one, DoctestModule) or b">>>" in file_path.read_bytes()]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Examples())  # a hook of this file is asked about its own folder only
    if config.getoption("--shuffle") is not None:
        settings.load_profile("anew")
    if not hasattr(config, "workerinput") and _has_room(_IN_MEMORY):
        # Workers, and the processes that tests start, are given it.
        temporary = tempfile.mkdtemp(prefix="minidsms-tests-", dir=_IN_MEMORY)
        os.chmod(temporary, 0o755)  # a server of PostgreSQL runs as somebody else
        os.environ["TMPDIR"], tempfile.tempdir = temporary, None
        config.add_cleanup(lambda: shutil.rmtree(temporary, ignore_errors=True))


_IN_MEMORY = "/dev/shm"
"""Where Linux has files in memory: half the time of tests of folders is waiting for a disk to be done."""


def _has_room(folder: str) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 4 << 30


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Every worker imports all tests; each begins elsewhere, so that what one rewrites the others find."""
    here = session.config.rootpath
    files = [path for given in session.config.args for path in sorted((here / given).rglob("test_*.py"))]
    worker, workers = (
        int(os.environ.get(f"PYTEST_XDIST_{name}", "0").lstrip("gw")) for name in ("WORKER", "WORKER_COUNT")
    )
    start = len(files) * worker // max(1, workers)
    for path in (*files[start:], *files[:start]) if workers else ():
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collection tells of it
            importlib.import_module(".".join(path.relative_to(here).with_suffix("").parts))


_TOGETHER = "tests/spark/", "tests/joins/"
"""Folders whose tests share what takes long to be made: a session, compiled forms for which others would wait."""
_SECONDS = {
    "tests/spark/": 400,
    "tests/joins/": 200,
    "tests/test_allocation_faults.py": 60,
    "tests/shell/test_interactive.py": 50,
    "tests/web/test_browser.py": 50,
    "tests/archive/test_elsewhere.py": 40,
    "tests/streamon/caching/test_answers_caches.py": 30,
    "tests/streamon/caching/test_adaptive_caches.py": 30,
    "tests/test_interrupts.py": 23,
    "tests/operators/test_generated_overs.py": 20,
    "tests/durability/test_crashes.py": 20,
    "tests/operators/test_panes.py": 18,
    "tests/machine_code/test_keeping.py": 15,
    "tests/plan/test_constants.py": 15,
    "tests/test_published_queries.py": 15,
    "tests/operators/test_k_mon_relations.py": 13,
    "tests/durability/test_checkpoint.py": 10,
    "tests/test_answers.py": 10,
    "tests/durability/test_limits.py": 13,
    "tests/streamon/join_trees/test_answers_trees.py": 12,
    "tests/streamon/test_starts.py": 11,
    "tests/operators/test_aggregate_forms.py": 12,
    "tests/plan/test_stream_of_instants.py": 9,
    "tests/types/test_decimals.py": 12,
    "tests/testing/test_matrix.py": 11,
    "tests/test_faults.py": 11,
    "tests/test_example_programs.py": 11,
    "tests/sinks/test_interrupted_files.py": 10,
    "tests/expressions/test_expressions.py": 8,
    "tests/kernels/test_compiling.py": 8,
    "tests/operators/test_screen.py": 10,
    "tests/operators/test_probing_select.py": 10,
    "tests/scheduler/test_schedulers.py": 10,
    "tests/test_examples.py": 10,
    "tests/streamon/screening/test_adaptive_sequence.py": 10,
    "tests/durability/test_backfill.py": 10,
    "tests/durability/test_blocks.py": 10,
    "tests/durability/test_run.py": 9,
    "tests/test_linear_road.py": 9,
    "tests/streamon/k_mon/test_reduced_joins.py": 8,
    "tests/test_forking.py": 8,
    "tests/test_laws.py": 8,
    "tests/streamon/test_answers_adaptive.py": 7,
    "tests/streamon/test_switched_joins.py": 7,
    "tests/streamon/join_trees/test_answers_auto.py": 7,
    "tests/durability/test_history.py": 7,
    "tests/test_coming_and_going.py": 6,
    "tests/test_nexmark.py": 6,
    "tests/testing/test_generators.py": 6,
}
"""How long they take, where the number of tests does not tell that; kernels that come first and what a shell or a
browser is waited for included.
"""


class _ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """A file goes to the worker that is free, those that take longest first, and some folders to one.

    So what a file starts, loads or makes for its tests, as a server or a library, one worker starts, and none waits at
    the end while another has begun what takes long.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in _TOGETHER if file.startswith(folder)), file)

    def _assign_work_unit(self, node: Any) -> None:
        longest = max(self.workqueue, key=lambda scope: _SECONDS.get(scope, 0.05 * len(self.workqueue[scope])))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget a file that is done: at every report all that a worker still has is counted."""
        super().mark_test_complete(node, item_index, duration)
        given = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(given[scope].values()):
            del given[scope]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffle")
    if seed is not None:
        Random(seed).shuffle(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    _keep_what_is_there()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    result = yield
    if nextitem is None or nextitem.path != item.path:
        _keep_what_is_there()
    return result


def _keep_what_is_there() -> None:
    """Tests, libraries, and what they have loaded by the end of a file stay to the end: collections of garbage pass
    over them, which took a third of the time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether outcomes are to be written instead of judged."""
    return bool(request.config.getoption("--rewrite"))
