"""The queries whose rows are measured one by one."""

from __future__ import annotations

from benchmarks import typical


def test_every_query_answers_rows_pushed_alone_as_those_pushed_at_once() -> None:
    rows = [tuple(row) for row in list(typical.rows())[:300]]
    for name, cql in typical.QUERIES.items():
        answers = []
        for size in (1, len(rows)):
            with typical.connection() as db:
                query = db.query(cql)
                for first in range(0, len(rows), size):
                    part = rows[first : first + size]
                    db.push("bid", part, ts=[typical.STEP * (first + i + 1) for i in range(len(part))])
                    db.advance(typical.STEP * (first + len(part)))
                db.advance(100_000)
                answers.append(sorted((c.ts, c.sign, repr(c.row)) for c in query.fetch()))
        assert answers[0] == answers[1] != [], name
