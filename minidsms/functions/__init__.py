"""The functions of one row that CQL has beyond its operators: a row of a table each, a file for each family.

A row says everything about a function: its types, its values, whether it can fail, and what the documentation tells of
it. The binder, the evaluator, SHOW FUNCTIONS, completion and the tests read the same row; only the evaluator by
definition (`minidsms.testing`) has its own.
"""

from __future__ import annotations

from minidsms.functions import (
    calendar,
    digests,
    documents,
    formats,
    lists,
    mathematics,
    nested,
    patterns,
    texts,
    web,
    written,
    zones,
)
from minidsms.functions.function import Function
from minidsms.functions.written import Written

FAMILIES: dict[str, tuple[Function, ...]] = {
    "text": texts.FUNCTIONS,
    "regular expressions": patterns.FUNCTIONS,
    "digests": digests.FUNCTIONS,
    "web addresses": web.FUNCTIONS,
    "JSON": documents.FUNCTIONS,
    "lists": lists.FUNCTIONS,
    "structs and maps": nested.FUNCTIONS,
    "mathematics": mathematics.FUNCTIONS,
    "calendar": calendar.FUNCTIONS,
    "times as text": formats.FUNCTIONS,
    "time zones": zones.FUNCTIONS,
}
"""The families in the order in which the documentation tells of them."""

LIBRARY: dict[str, Function] = {f.name: f for family in FAMILIES.values() for f in family}
"""Every function of the families by its lower-case name."""

WRITTEN: dict[str, Written] = {f.name: f for f in written.FUNCTIONS}
"""The functions that are other functions in other words."""
