"""`python -m tests.alone [PATH ..]`: every test file in a process of its own, its tests in a random order.

What another test has loaded, compiled or left behind is not there: a file that needs it fails. Without paths, all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Exit code 1 when a file fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.alone", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["tests"], help="files or folders (default: tests)")
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    options = parser.parse_args()
    failed = []
    for path in sorted({file for each in options.paths for file in _files(ROOT / each)}):
        began = time.monotonic()
        command = ["-m", "pytest", str(path), "-q", "-x", "-m", "not long", "--shuffle", str(options.seed)]
        run = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
        # 5: every test of the file is a long one.
        state = "passed" if run.returncode in (0, 5) else "FAILED"
        print(f"{state}  {path.relative_to(ROOT)}  {time.monotonic() - began:.1f} s", flush=True)
        if state == "FAILED":
            failed.append(path)
            print(run.stdout[-4000:], run.stderr[-1000:], sep="\n", flush=True)
    print(f"{len(failed)} failed")
    return 1 if failed else 0


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("test_*.py"))


if __name__ == "__main__":
    sys.exit(main())
