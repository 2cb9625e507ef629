"""Machine code that numba kept but that is no longer that of the sources.

numba compiles a function anew when its own file has changed. A kernel that takes constants from another file (the
words of an index, say) would go on with the old ones when only that file changes, and read the wrong words. So the
indexes of what was kept are dropped wherever a file that a kernel imports has changed since the last run.

Invariant: no kernel runs with a constant that is not that of the sources.  docs/design, point 9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

_IMPORTED = re.compile(r"^from minidsms\.([\w.]+) import", re.MULTILINE)
_RECORD = "sources.json"


def drop_stale_code(kernels: Path, imported: Iterable[Path]) -> list[str]:
    """Drop what was kept of the kernels that import a file which has changed; the names of their files.

    kernels: the folder of the kernels.  imported: files outside of it that kernels import constants from.
    Where the folder cannot be written, numba keeps its code elsewhere, by the path and time of each file.
    """
    kept = kernels / "__pycache__"
    now = {_name(path): [path.stat().st_mtime_ns, path.stat().st_size] for path in [*kernels.glob("*.py"), *imported]}
    try:
        before = json.loads((kept / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    if now == before:
        return []
    changed = {name for name, state in now.items() if before.get(name) != state}
    dropped = []
    try:
        for path in sorted(kernels.glob("*.py")):
            if changed.intersection(_IMPORTED.findall(path.read_text(encoding="utf-8"))):
                for index in kept.glob(f"{path.stem}.*.nbi"):
                    index.unlink(missing_ok=True)
                    dropped.append(path.name)
        kept.mkdir(exist_ok=True)
        (kept / _RECORD).write_text(json.dumps(now), encoding="utf-8")
    except OSError:
        return dropped
    return sorted(set(dropped))


def _name(path: Path) -> str:
    """As the import statements of this package have it: `elements`, `kernels.mjoin`."""
    return f"kernels.{path.stem}" if path.parent.name == "kernels" else path.stem
