"""Routes that nobody would choose, for tests: no answer may depend on them (docs/semantics T5)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from minidsms.expressions.attributes import Attributes
from minidsms.expressions.classifiers import Classifier, Reading
from minidsms.expressions.routes import MOST_CLASSIFIERS, Order, Routes, prefixed


def random_routes(
    attributes: Attributes, rng: Random, random_order: Callable[[], Order], may_go_together: bool = False
) -> Routes:
    """One to three orders, by one or two attributes. may_go_together: their last places may be those of all."""
    readings = attributes.readings()
    classifiers = []
    for column, reading in rng.choices(readings, k=rng.randint(1, MOST_CLASSIFIERS)):
        buckets = rng.randint(2, 24)
        bounds = sorted(float(rng.randint(-5, 50)) for _ in range(buckets - 2)) if reading is Reading.RANGE else []
        classifiers.append(Classifier(column, attributes.fields[column].name, reading, buckets, tuple(bounds)))
    cells = 1
    for each in classifiers:
        cells *= each.buckets
    orders = tuple(random_order() for _ in range(rng.randint(1, 3)))
    table = bytes(rng.randrange(len(orders)) for _ in range(cells))
    own = rng.randint(1, len(orders[0])) if may_go_together and rng.random() < 0.5 else None
    if own is not None:
        orders = tuple(prefixed(orders[0], order[:own]) for order in orders)
    return Routes(orders[0], tuple(classifiers), orders, table, own=own)
