"""`python -m experiments.content_routing [calls] [clock] [flights] [--seeds N]`: see the package.

Writes pictures and a page each into experiments/results/. With 3 seeds all of it takes some minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from experiments.content_routing.report import PARTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = argparse.ArgumentParser(prog="python -m experiments.content_routing", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which; all of them if none is named")
    parser.add_argument("--seeds", type=int, default=3, help="runs per point")
    options = parser.parse_args(arguments)
    for part in options.parts or PARTS:
        began = time.monotonic()
        print(f"{part}: {PARTS[part](options.seeds)}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
