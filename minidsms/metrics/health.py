"""How a service over a connection is: what a load balancer or a person asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minidsms.connection import Connection


def health(db: Connection) -> dict[str, Any]:
    """status: 'ok', 'degraded' (queries have failed, or nearly all memory is used) or 'closed'; and why.

    failed: queries, with their reasons.  paused: queries.  lag_s: of the query furthest behind, in event time.
    queued: elements before queries and between operators.  nbytes, memory_limit.  last_checkpoint_s: since
    1970, or None.
    """
    with db.lock:
        if db.is_closed:
            return {"status": "closed"}
        queries = list(db.queries.values())
        told = [query.figures() for query in queries]
        operators = {id(op): op for query in queries for op in query.network.working}.values()
        failed = {query.name: query.failure[1] for query in queries if query.failure is not None}
        limit, nbytes = db.settings["memory_limit"], db.nbytes
        is_short = limit is not None and nbytes > 0.95 * limit
        return {
            "status": "degraded" if failed or is_short else "ok",
            "failed": failed,
            "paused": [query.name for query in queries if query.state == "paused"],
            "queries": len(queries),
            "lag_s": max((each["lag"] for each in told), default=0) * db.tick_ns / 1e9,
            "queued": sum(each["input_waiting"] for each in told)
            + sum(queue.size for operator in operators for queue in operator.inputs),
            "nbytes": nbytes,
            "memory_limit": limit,
            "last_checkpoint_s": db.checkpointed_s,
        }
