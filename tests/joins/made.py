"""Joins for tests, made of what a test speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from minidsms.elements import Schema
from minidsms.joins.by_caches import CacheOptions
from minidsms.joins.equal_columns import Equality
from minidsms.joins.join import Join
from minidsms.joins.spec import JoinSpec
from minidsms.queues import Queue

J = TypeVar("J", bound=Join)


def join_of(
    inputs: Sequence[Queue],
    equalities: Sequence[Equality],
    columns: Sequence[tuple[int, int]],
    schema: Schema,
    shown: Sequence[int] | None = None,
    ranges: Sequence[int | None] | None = None,
    fifo: Sequence[bool] | None = None,
) -> Join:
    """A join by pipelines, to begin with."""
    return Join(inputs, JoinSpec(equalities, columns, schema, shown, ranges, fifo))


def cached_join_of(
    inputs: Sequence[Queue],
    equalities: Sequence[Equality],
    columns: Sequence[tuple[int, int]],
    schema: Schema,
    *,
    kind: type[J],
    **options: Any,
) -> J:
    """As `join_of`, with caches to come. options: of the join and of its caches."""
    of_join = {name: options.pop(name) for name in ("shown", "ranges", "fifo") if name in options}
    return kind(inputs, JoinSpec(equalities, columns, schema, **of_join), caching=CacheOptions(**options))
