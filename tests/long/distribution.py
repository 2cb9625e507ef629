"""Try a wheel and a source archive as somebody who installs them: `python -m tests.long.distribution dist/*`.

Each is installed in an environment of its own that has no compiler in its path, and answers a query and a command
there: by the newest of its dependencies and, on the oldest Python supported, by the oldest that it admits.

Invariant: what runs is what was installed, and nothing of the folder this is called from.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import requires
from pathlib import Path

_PROGRAM = """
import sys, time
began = time.process_time()
import minidsms
took = time.process_time() - began
assert sys.prefix in minidsms.__file__, minidsms.__file__
with minidsms.connect() as db:
    db.execute("CREATE STREAM S (k TEXT, v INTEGER)")
    q = db.query("SELECT k, COUNT(*) AS n, SUM(v) AS s FROM S [RANGE 10 SECONDS] GROUP BY k HAVING UPPER(k) = 'A'")
    db.push("S", [("a", 1), ("b", 2), ("a", 3)], ts=1000)
    db.advance(1000)
    assert q.snapshot() == [("a", 2, 4)], q.snapshot()
texts = "0001-01-01", "1969-12-31 23:59:59.9", "2013-02-28T12:34:56.789012345Z", "2013-02-30", "9999-12-31 10:00+02:00"
with open("times.csv", "w") as file:
    file.write("n,t\\n" + "".join(f"{n},{text}\\n" for n, text in enumerate(texts)))
with minidsms.connect() as db:
    db.execute("CREATE STREAM T (n INTEGER, t TIMESTAMP) TIMESTAMP BY n FROM 'times.csv'")
    q = db.query("SELECT ISTREAM(t) FROM T [NOW]")
    db.run()
    times = [change.row[0] for change in q.fetch()]
    assert times == [-62135596800000, -100, 1362054896789, 253402243200000], times
print(f"answers; import took {took * 1000:.0f} ms of CPU")
"""


def oldest() -> list[str]:
    """The requirements, pinned to the least version that each admits.

    >>> [line for line in oldest() if line.startswith("lark")]
    ['lark==1.3.1.*']
    """
    own = [line for line in requires("minidsms") or [] if "extra ==" not in line]
    found = (re.fullmatch(r"([\w-]+)>=([0-9.]+).*", line) for line in own)
    return [f"{match[1]}=={match[2]}.*" for match in found if match is not None]


def is_oldest(python: str) -> bool:
    """Whether it is the oldest Python supported: the oldest dependencies are compiled for no newer one."""
    shown = subprocess.run([python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
    return shown.stdout.strip() == "(3, 11)"


def try_out(archive: Path, python: str, pins: list[str]) -> str:
    """What an installed archive says of itself. CalledProcessError where it cannot be installed or does not work."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        binaries = Path(folder) / "bin"
        environment = {"PATH": str(binaries), "HOME": folder, "LANG": os.environ.get("LANG", "C.UTF-8")}
        environment |= {name: value for name, value in os.environ.items() if name.upper().startswith(("PIP_", "HTTP"))}

        def run(*command: str) -> str:
            done = subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True)
            return done.stdout.strip()

        installed = str(binaries / "python")
        run(installed, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(archive.resolve()), *pins)
        answered = run(installed, "-I", "-c", _PROGRAM)
        return f"{run(str(binaries / 'minidsms'), '--version')} {answered}"


def main() -> int:
    """Try all archives with all Pythons; 1 where one does not work."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("archives", nargs="+", type=Path)
    parser.add_argument("--python", action="append", help="a Python to try them with; this one otherwise")
    options = parser.parse_args()
    failed = 0
    for python in options.python or [sys.executable]:
        for archive in options.archives:
            for label, pins in (("newest", []), *([("oldest", oldest())] if is_oldest(python) else [])):
                try:
                    told = try_out(archive, python, pins)
                except subprocess.CalledProcessError as error:
                    failed, told = 1, f"FAILED: {(error.stderr or str(error)).strip()[-1500:]}"
                print(f"{archive.name}, {python}, {label} dependencies: {told}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
