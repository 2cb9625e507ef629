"""`python -m experiments.k_mon [monitoring] [..] [--quick]`: see the package. Writes pages into
experiments/results/."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from experiments.k_mon.report import PARTS, QUICKER


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = argparse.ArgumentParser(prog="python -m experiments.k_mon", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, of the windows, of k")
    options = parser.parse_args(arguments)
    for part in options.parts or PARTS:
        began = time.monotonic()
        print(f"{part}: {PARTS[part](QUICKER if options.quick else 1)}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
