"""What holds of a bound query as a whole: can it only grow, what makes it begin (docs/semantics D2, D3, R3).

Invariant: `is_monotonic` is a proof. False means "not proved", and the defaults then ask the author.
"""

from __future__ import annotations

from minidsms.cql import bound


def is_monotonic(node: bound.Node) -> bool:
    """Whether the relation can be shown never to lose a row. A stream, which only grows, is monotonic.

    A relation is monotonic when every step from its windows on is, so the steps are looked at in any order.
    """
    pending, seen = [node], {id(node)}
    while pending:
        n = pending.pop()
        if n.kind == "stream":
            continue
        further = n.grows_with()
        if further is None:
            return False
        for m in further:
            if id(m) not in seen:
                seen.add(id(m))
                pending.append(m)
    return True


def event_windows(node: bound.Node) -> tuple[bound.Node, ...]:
    """The windows whose first arrival starts a global aggregate of the node; its base relations when it has none."""
    found = bound.changing(node)
    return tuple(n for n in found if isinstance(n, bound.Window)) or found
