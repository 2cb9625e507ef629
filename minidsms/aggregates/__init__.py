"""The built-in aggregates: a row of a table each, a file for each family.

A row says what an aggregate takes and gives, how its state is kept, and what the documentation tells of it; the binder,
the operator, SHOW FUNCTIONS, completion and the tests read the same row. `minidsms.testing` has definitions of its own.
"""

from __future__ import annotations

from minidsms.aggregates import bits, collected, kept, moments, ordered
from minidsms.aggregates.aggregate import Aggregate

AGGREGATES: dict[str, Aggregate] = {
    a.name: a for a in (*kept.FUNCTIONS, *ordered.FUNCTIONS, *moments.FUNCTIONS, *bits.FUNCTIONS, *collected.FUNCTIONS)
}
"""Every built-in aggregate by its lower-case name."""

SYNONYMS = {
    "every": "bool_and",
    "logical_and": "bool_and",
    "logical_or": "bool_or",
    "min_by": "arg_min",
    "max_by": "arg_max",
    "quantile": "quantile_disc",
    "var_samp": "variance",
    "var": "variance",
    "stddev_samp": "stddev",
    "stddev_sample": "stddev",
    "correlation": "corr",
    "mean": "avg",
    "favg": "avg",
    "fsum": "sum",
    "kahan_sum": "sum",
    "countif": "count_if",
    "argmin": "arg_min",
    "argmax": "arg_max",
    "arbitrary": "any_value",
    "group_concat": "string_agg",
    "listagg": "string_agg",
    "collect_list": "array_agg",
    "list": "array_agg",
    "topk": "max_n",
    "approx_quantile": "quantile_disc",
    "collect_set": "array_agg",
    "count_distinct": "count",
    "approx_count_distinct": "count",
    "approx_distinct": "count",
    "topkdistinct": "max_n",
    "earliest_by_offset": "first",
    "latest_by_offset": "last",
    "json_agg": "array_agg",
    "jsonb_agg": "array_agg",
    "json_object_agg": "array_agg",
    "jsonb_object_agg": "array_agg",
}
"""Other spellings of the same aggregates; the bound tree only knows the first one. EARLIEST_BY_OFFSET and
LATEST_BY_OFFSET pass over NULLs; what is called JSON is JSON made of the lists."""

OF_DIFFERENT = frozenset(("collect_set", "count_distinct", "approx_count_distinct", "approx_distinct", "topkdistinct"))
"""Spellings that mean DISTINCT."""
