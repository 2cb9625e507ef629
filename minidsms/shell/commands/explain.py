"""`.explain`: how a query is understood and carried out."""

from __future__ import annotations

from minidsms.cql.errors import Error
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session
from minidsms.shell.showing import harmless


def _explain(session: Session, arguments: Arguments) -> None:
    words = arguments.words
    if not words:
        raise arguments.wrong("a query is missing")
    analyze = words[0].says("ANALYZE") and len(words) == 2
    if len(words) == 1 or analyze:
        text = session.query_named(words[-1].text).explain(analyze=analyze)
    else:
        table = session.db.execute(f"EXPLAIN {arguments.line}")
        if getattr(table, "columns", None) != ("plan",):
            raise Error("only a query can be explained")
        text = "\n".join(line for (line,) in table)
    session.results.write(harmless(text) + "\n")


EXPLAIN = Command(
    "explain",
    ".explain [ANALYZE] query | .explain SELECT ..",
    "how a query is understood and carried out",
    "The query with its defaults written out, the logical plan, and the operators that run it. ANALYZE adds what each "
    "operator has done. The statements EXPLAIN and EXPLAIN ANALYZE do the same; .plan draws it.",
    _explain,
    ("query",),
    (".explain slow", ".explain ANALYZE slow", ".explain SELECT car FROM Pos [NOW] WHERE speed > 65"),
)
