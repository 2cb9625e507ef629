"""What a pane keeps of a group's elements, column by column, so that aggregates of windows follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.elements import Schema, Type

MOST_COLUMNS = 60
"""Keys and measures: the bits of a word say which are NULL."""


@dataclass(frozen=True)
class Measure:
    """What a pane knows of a column's values in a group. kind: 'sum' of whole numbers, 'count' of those that are not
    NULL, 'min', 'max'; 'rows' counts elements, and has no column: -1.
    """

    kind: str
    column: int

    def type_over(self, schema: Schema) -> Type:
        """Of the result."""
        return Type.INTEGER if self.kind in ("rows", "count") else schema[self.column].type

    def text(self, schema: Schema) -> str:
        """In words."""
        return self.kind if self.column < 0 else f"{self.kind} of {schema[self.column].name}"
