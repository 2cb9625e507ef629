"""The formats a plan can be had in: text for reading, JSON for programs, Mermaid and SVG for looking at.

Invariant: nothing that stands in a query (names, texts) becomes markup. docs/statements/explain.md.
"""

from __future__ import annotations

from minidsms.cql.syntax import PLAN_FORMATS as FORMATS

__all__ = ["FORMATS"]
