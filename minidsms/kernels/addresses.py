"""Reading columns by address: many columns of a store are one table to a kernel, not two arrays each.

A kernel has to be told at compile time how many arrays it is handed, and looks at each. A table of addresses is made by
the owner of the arrays (`synopses.stream_store.StreamStore.places`), lives as long as they do and is made anew when one
of them is replaced; `machine_code.intrinsics` reads behind them.

Invariant: whoever reads by address checks nothing, so an index is always one of the array's.
"""

from __future__ import annotations

VALUES, VALID, WIDTH, PLACE_WORDS = range(4)
"""Columns of a table of places, a row per column: address of the values; of their bytes of validity, 0 where none is
NULL; bytes a value takes, 8 or 1."""
