"""`python -m tests.alone [PATH ..]`: every test file in a process of its own, its tests in a random order.

What another test has loaded, compiled or left behind is not there: a file that needs it fails. Without paths, all. The
processes are forked from one that has imported pytest and the package, whose modules are loaded as they are needed.
`--cold`: without kernels that an earlier process has compiled.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import hypothesis  # noqa: F401
import pytest

import minidsms  # noqa: F401

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Exit code 1 when a file fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.alone", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["tests"], help="files or folders (default: tests)")
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    parser.add_argument("--cold", action="store_true", help="every file compiles its kernels")
    options = parser.parse_args()
    os.chdir(ROOT)
    failed = 0
    for path in sorted({file for each in options.paths for file in _files(ROOT / each)}):
        with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as kernels:
            child = os.fork()
            if not child:
                if options.cold:
                    os.environ["NUMBA_CACHE_DIR"] = kernels
                _run(path, options.seed, output.fileno())
            _, status, used = os.wait4(child, 0)
            # 5: every test of the file is a long one.
            passed = os.waitstatus_to_exitcode(status) in (0, 5)
            seconds = used.ru_utime + used.ru_stime
            print(f"{'passed' if passed else 'FAILED'}  {path.relative_to(ROOT)}  {seconds:.1f} s of CPU", flush=True)
            if not passed:
                failed += 1
                output.seek(0)
                print(output.read()[-5000:].decode(errors="replace"), flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


def _run(path: Path, seed: int, output: int) -> None:
    """Run the tests of a file and end the process."""
    code: int = 99
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = pytest.main([str(path), "-q", "-x", "-p", "no:cacheprovider", "-m", "not long", "--shuffle", str(seed)])
        sys.stdout.flush()
    finally:
        os._exit(int(code))


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("test_*.py"))


if __name__ == "__main__":
    sys.exit(main())
