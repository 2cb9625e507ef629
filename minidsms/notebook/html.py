"""Queries, tables and plans as pieces of HTML.

Invariant: whatever stands in the data, in names and in texts is escaped; nothing is loaded from elsewhere, no script
runs.  docs/notebooks.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from minidsms.counted import counted
from minidsms.shell.showing import WIDEST, cell, in_order

if TYPE_CHECKING:
    from minidsms.query import Query

ROWS = 20
"""Rows a notebook shows of an answer."""
_NOTE = 'style="color:#666;font-size:90%"'


def table_html(columns: Sequence[str], rows: Sequence[Sequence[Any]], widest: int = WIDEST) -> str:
    """A table. widest: how many characters of a value are shown."""
    first = rows[0] if rows else columns
    head = "".join(f"<th{_side(value)}>{_text(name)}</th>" for name, value in zip(columns, first))
    body = "".join(
        "<tr>" + "".join(f"<td{_side(value)}>{_text(cell(value, widest))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def query_html(query: Query, rows: int = ROWS) -> str:
    """A query: its state, the relation as it is or the newest answers that wait, and its text. Nothing is taken."""
    with query.lock:
        if query.state == "closed":
            return f"<p><b>{_text(query.name)}</b> <span {_NOTE}>closed</span></p>"
        figures = query.figures()
        notes = [f"{query.kind}, {query.state}", counted(figures["results"], "change")]
        if figures["waiting"]:
            notes.append(f"{figures['waiting']:,} wait to be fetched")
        if figures["shed"]:
            notes.append(f"{figures['shed']:,} elements shed")
        notes.append(f"closed until {_instant(figures['closed_until'])}")
        parts = [f"<p><b>{_text(query.name)}</b> <span {_NOTE}>{_text(', '.join(notes))}</span></p>"]
        if query.failure is not None:
            ts, reason = query.failure
            parts.append(f"<p><b>failed</b> at {ts}: {_text(reason)}</p>")
        names = query.schema.names
        if query.kind == "relation" and query.failure is None:
            # As they come out, but numbers and texts in their order, so that a view does not jump.
            present = query.snapshot() if query.order else sorted(query.snapshot(), key=in_order)
            parts.append(table_html(names, present[:rows]))
            parts.append(_rest(len(present) - rows))
        else:
            newest = query.newest(rows)
            parts.append(table_html(("ts", *names), [(c.ts, *c.row) for c in newest]))
        parts.append(f"<details><summary>query</summary><pre>{_text(query.expanded, lines=True)}</pre></details>")
        return "".join(parts)


class PlanView:
    """The plan of a query, drawn where it is shown; `str` gives it as text."""

    def __init__(self, text: str, svg: str) -> None:
        self.text = text
        self.svg = svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg}</div>'

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def _instant(ts: int) -> str:
    from minidsms.plan.explain import instant_text

    return instant_text(ts)


def _rest(n: int) -> str:
    return f"<p {_NOTE}>and {counted(n, 'more row')}</p>" if n > 0 else ""


def _side(value: Any) -> str:
    """Numbers to the right, all else to the left with its spaces: notebooks put every cell to the right."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f' style="text-align:{"right" if is_number else "left;white-space:pre"}"'


def _text(text: str, lines: bool = False) -> str:
    from minidsms.shell.harmless import harmless

    shown = harmless(text)
    return escape(shown if lines else shown.replace("\n", " "))
