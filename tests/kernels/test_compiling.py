"""The line that explains the wait of a first run, in processes of their own with an empty cache."""

from __future__ import annotations

import ast
import fcntl
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from minidsms import kernels
from minidsms.kernels import screening
from minidsms.machine_code import binding, compiling, environment, store
from minidsms.machine_code.definition import definition_of, definitions

PROGRAM = """
import numba
import numpy as np
from minidsms.kernels.key_table import rehash
from minidsms.kernels.windows import merge_instants

@numba.njit("int64(int64)")
def foreign(x):
    return x

print("and now")
import sys
print("ours", file=sys.stderr, flush=True)
numbers = np.zeros(1, np.int64)
merge_instants(numbers, numbers.copy(), numbers.copy())
rehash(np.full(2, -1, np.int32), numbers.reshape(1, 1), numbers.copy(), 0)
"""
LINE = "minidsms: compiling kernels (first run on this machine, up to a minute) .."


def told(cache: Path, on_terminal: bool) -> str:
    """What the program writes to stderr."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    if not on_terminal:
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        return run.stderr
    screen, terminal = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.DEVNULL, stderr=terminal, check=True
        )
        os.close(terminal)
        return os.read(screen, 10_000).decode()
    finally:
        os.close(screen)


def test_a_terminal_is_told_once_that_kernels_are_compiled_and_not_when_the_cache_has_them(tmp_path: Path) -> None:
    assert told(tmp_path, True).split("\r\n") == ["ours", LINE, ""]
    assert told(tmp_path, True).split("\r\n") == ["ours", ""]


def test_what_is_no_terminal_is_told_nothing_and_a_terminal_while_another_process_compiles_the_same(
    tmp_path: Path,
) -> None:
    assert told(tmp_path, False) == "ours\n"
    kernel = next(tmp_path.rglob("*.merge_instants-*.kernel"))
    kernel.unlink()
    screen, terminal = pty.openpty()
    with (kernel.parent / f"{kernel.name.partition('-')[0]}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.DEVNULL, stderr=terminal
        ) as process:
            os.close(terminal)
            seen = b""
            while LINE not in seen.decode():
                seen += os.read(screen, 10_000)
            assert process.poll() is None
            fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(screen)


def test_a_notebook_is_told_and_a_missing_or_closed_standard_error_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    closed = io.StringIO()
    closed.close()
    for stderr in (notebook, closed, None):
        monkeypatch.setattr(sys, "stderr", stderr)
        compiling.announce.__wrapped__()
    assert notebook.getvalue() == f"{LINE}\n"


FILTERING = """
import sys
import minidsms

db = minidsms.connect()
db.execute("CREATE STREAM S (a INTEGER, b INTEGER)")
q = db.query("SELECT a FROM S WHERE a > 1 AND b < 5")
db.push("S", [(2, 3), (3, 9)], ts=[0, 1])
db.advance(1)
print(len(q.fetch()), [m for m in ("numba", "pyarrow.compute", "minidsms.kernels.mjoin") if m in sys.modules])
"""


def test_a_query_that_only_filters_loads_neither_the_compiler_nor_the_functions_of_arrow_nor_joins() -> None:
    run = subprocess.run([sys.executable, "-c", FILTERING], capture_output=True, text=True, check=True)
    assert run.stdout == "1 []\n"


def test_no_file_of_kernels_loads_the_compiler() -> None:
    for path in Path(kernels.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.partition(".")[0] in ("numba", "llvmlite")], (
                f"{path.name}: kernels are made by minidsms.machine_code, which keeps them so that numba need not load"
            )


def test_what_kernels_refer_to_every_process_has() -> None:
    """Else each compiles them anew. Looked at are those that are kept by now, and one that has been so."""
    once = definition_of(screening.screen_homes)
    assert once is not None
    binding._engine()
    for kernel in definitions():
        code = store.read(kernel.name, environment.mark(kernel.digest))
        if code is None and kernel is once:
            code = compiling.compile_and_keep(kernel)
        assert code is None or all(map(binding.is_defined, code.symbols)), (kernel.name, code.symbols)


JOINING = """
import sys
import minidsms

db = minidsms.connect()
db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM T (k INTEGER, w INTEGER)")
counts = db.query("SELECT k, COUNT(*), MAX(v) FROM S [RANGE 10] GROUP BY k")
joined = db.query("SELECT ISTREAM(v, w) FROM S [RANGE 10], T [RANGE 10] WHERE S.k = T.k")
db.push("S", (1, 2), ts=0)
db.push("T", (1, 3), ts=0)
db.advance(0)
print(len(counts.fetch()), len(joined.fetch()), "numba" in sys.modules)
"""


def test_a_second_run_answers_without_loading_the_compiler() -> None:
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", JOINING], capture_output=True, text=True, check=True)
    assert run.stdout == "1 1 False\n"
