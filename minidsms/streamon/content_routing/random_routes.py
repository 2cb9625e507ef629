"""Routes that nobody would choose, for tests: no answer may depend on them (docs/semantics T5)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from minidsms.expressions.attributes import Attributes
from minidsms.expressions.classifiers import Classifier, Reading
from minidsms.expressions.routes import MOST_CLASSIFIERS, Order, Routes


def random_routes(attributes: Attributes, rng: Random, random_order: Callable[[], Order]) -> Routes:
    """One to three orders, by one or two attributes."""
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
    return Routes(orders[0], tuple(classifiers), orders, table)
