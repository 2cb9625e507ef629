"""What a row gets from the rows beside it: `function(..) OVER (PARTITION BY .. ORDER BY ..)`.

Invariant: a result depends on the rows of the partition in their order alone (docs/semantics R7).
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.aggregates.aggregate import Settings, SortKey
from minidsms.aggregates.moments import OF_PAIRS
from minidsms.elements import Type

RANKS = ("row_number", "rank", "dense_rank")
"""The place of a row: of its own, of the first row it is equal to in the keys, and counting these once."""
SHARES = ("ntile", "percent_rank", "cume_dist")
"""The place of a row among all of its partition."""
NEIGHBOURS = ("lag", "lead")
"""The value of a row so many places before, or behind."""
SLIDING = ("count", "sum", "avg", "min", "max")
"""Aggregates of the rows of a frame which kernels keep while it slides over a relation."""
IN_ORDER = ("string_agg", "array_agg", "first_n", "last_n")
"""Aggregates of the rows of a frame in their order."""
AGGREGATES = (
    *SLIDING, "variance", "stddev", "var_pop", "stddev_pop", "median", "quantile_cont", "quantile_disc", "mode",
    "bit_and", "bit_or", "bit_xor", "product", "percentile_cont", "percentile_disc", "approx_percentile",
    "approx_top_k", "histogram", "min_n", "max_n", "arg_min", "arg_max", "arg_min_n", "arg_max_n", *OF_PAIRS, *IN_ORDER,
)  # fmt: skip
"""Aggregates of the rows of a frame."""
FILLING = ("first", "last")
"""The first and the last value of a frame that is not NULL."""
PLACES = ("first_value", "last_value", "nth_value")
"""The value of one row of a frame."""
FUNCTIONS = (*RANKS, *SHARES, *NEIGHBOURS, *PLACES, *AGGREGATES)


@dataclass(frozen=True)
class Frame:
    """Which rows of the partition a call is of, relative to the row.

    start, end: how many rows away, negative before it, or, by_value, how far the keys are away: at 0 are the rows equal
    in all keys. None has no bound.
    """

    by_value: bool = False
    start: int | None = None
    end: int | None = None

    @property
    def is_by_distance(self) -> bool:
        """Whether keys are added to and subtracted from."""
        return self.by_value and bool(self.start or self.end)

    @property
    def reach(self) -> int:
        """How far behind the last row the rows stand that one more may change, or that it may see."""
        back = max(0, -(self.end or 0)) if self.start is None else max(0, -self.start)
        return back + max(0, self.end or 0)


PARTITION = Frame()
"""All rows of the partition."""
PEERS = Frame(True, None, 0)
"""All rows up to this one, and those equal to it in the keys."""


@dataclass(frozen=True)
class OverCall:
    """One call. Columns are those of the input.

    partition, order: which columns make the partition, and by which it is sorted and how.  arg: None for ranks and
    COUNT(*).  distance: how many rows LAG and LEAD look away, the n of NTH_VALUE and NTILE.  default: what they give in
    place of NULL where no row is so far away, of the row itself.  settings: what an aggregate has beside its argument.
    distinct: equal values count once.  values: how many the argument holds; of several it is the STRUCT of these, or
    NULL.  user: it is an aggregate of the user.  label: the call in words.
    """

    function: str
    type: Type
    partition: tuple[int, ...]
    order: tuple[tuple[int, SortKey], ...]
    label: str
    arg: int | None = None
    frame: Frame = PARTITION
    distance: int | None = None
    default: int | None = None
    settings: Settings | None = None
    distinct: bool = False
    values: int = 1
    user: bool = False

    @property
    def slides(self) -> bool:
        """Kernels keep the aggregate while its frame slides over a relation."""
        return self.function in SLIDING and not self.distinct and not self.user

    @property
    def is_aggregate(self) -> bool:
        """States of groups can give it, into which the rows of its frame come in their order."""
        return self.user or self.function in AGGREGATES or self.function in FILLING

    @property
    def sees_order(self) -> bool:
        """Of rows that are equal in the keys it matters which stands before which."""
        return not self.user and (self.function not in (*RANKS, *AGGREGATES) or self.function in IN_ORDER)

    @property
    def is_framed(self) -> bool:
        """It is of the rows of its frame."""
        return self.is_aggregate or self.function in PLACES

    @property
    def looks_ahead(self) -> bool:
        """Its result may depend on rows that stand behind in the order."""
        ahead = self.frame.end is None or self.frame.end > 0
        return self.function == "lead" or self.function in SHARES or (self.is_framed and ahead)

    @property
    def aggregate(self) -> str:
        """The function as aggregates of groups are called."""
        return "sum_decimal" if self.sums_decimals else self.function

    @property
    def sums_decimals(self) -> bool:
        return self.function == "sum" and self.type.kind == "DECIMAL"

    @property
    def can_fail(self) -> bool:
        """Its result may not fit."""
        return self.user or (self.function == "sum" and self.type is not Type.FLOAT)
