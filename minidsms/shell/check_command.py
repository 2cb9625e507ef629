"""`minidsms check FOLDER`: what the folder of a durable connection holds, and whether it is sound."""

from __future__ import annotations

import argparse
import sys

from minidsms.counted import counted
from minidsms.shell.showing import print_table


def check(options: argparse.Namespace) -> int:
    """Read the folder; the exit code. Raises Error where it is damaged."""
    from minidsms.durability.checking import check

    found = check(options.folder)
    rows = [[kind, f"{n:,}"] for kind, n in sorted(found.kinds.items())]
    print_table("", [("entries", False), ("", True)], rows, sys.stdout)
    of = f"{counted(found.segments, 'segment')}, {counted(found.blocks, 'block')}"
    print(f"{found.log}: {of}, {found.nbytes:,} bytes, sound")
    if found.cut_off:
        print(f"{found.cut_off:,} bytes at the end are no whole entries (not synced, or damaged): opening removes them")
    return 0
