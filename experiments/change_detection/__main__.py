"""`python -m experiments.change_detection [detectors] [replays] [engine] [--seeds N]`: see the package.

Writes pictures and a page each into experiments/results/. All of it takes some ten minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from experiments.change_detection.report import PARTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = argparse.ArgumentParser(prog="python -m experiments.change_detection", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which; all of them if none is named")
    parser.add_argument("--seeds", type=int, default=2, help="streams per point, or rounds of timed runs")
    options = parser.parse_args(arguments)
    for part in options.parts or PARTS:
        began = time.monotonic()
        print(f"{part}: {PARTS[part](options.seeds)}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
