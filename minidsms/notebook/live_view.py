"""A view of a query that is kept up to date where it stands.

A thread looks at the query now and then and shows it again if it has changed; so it moves while a cell pushes, and also
when nobody calls. It ends with the query, with `stop`, and with the program.
Invariant: looking takes nothing from the query's answers.  docs/notebooks.md.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import Error
from minidsms.notebook.html import query_html
from minidsms.process.threads import begun

if TYPE_CHECKING:
    from minidsms.query import Query

_log = logging.getLogger("minidsms.notebook")
Show = Callable[[str], None]
"""Puts a piece of HTML in the place of the one before."""


def in_notebook() -> Show:
    """A place below the running cell. Error where there is no notebook."""
    try:
        ipython: Any = importlib.import_module("IPython.display")
    except ImportError:
        hint = "pip install ipython; elsewhere, q.live(show=f) calls f with the HTML of each change"
        raise Error(f"a live view needs a notebook: IPython is not installed\nhelp: {hint}") from None
    handle = ipython.display(ipython.HTML(""), display_id=True)
    if handle is None:
        raise Error("a live view needs a notebook; elsewhere, the shell's .watch shows a query as it changes")
    return lambda html: handle.update(ipython.HTML(html))


class LiveView:
    """interval_s: seconds between two looks.  rows: of the answer, at most.  show: default: in the notebook."""

    def __init__(self, query: Query, interval_s: float = 0.5, rows: int = 20, show: Show | None = None) -> None:
        self._query = query
        self._rows = rows
        self._show = show or in_notebook()
        self._shown = ""
        self._has_failed = False
        self._stopped = threading.Event()
        self._interval_s = interval_s
        self.look()
        self._thread = begun(self._run, f"live view of {query.name}")

    def _ipython_display_(self) -> None:
        """Nothing more at the end of a cell: it is shown already."""

    def look(self) -> bool:
        """Show the query if it has changed; False when it has been closed."""
        html = query_html(self._query, self._rows)
        if html != self._shown:
            self._show(html)
            self._shown = html
        return self._query.state != "closed"

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            try:
                if not self.look():
                    return
            except Exception:  # the next look may be shown
                if not self._has_failed:
                    _log.exception("the live view of %s could not be shown; told once", self._query.name)
                self._has_failed = True

    def stop(self) -> None:
        """Leave what is shown as it is. Stopping twice is no error."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
