"""Routes that nobody would choose, for tests: no answer may depend on them (docs/semantics T5)."""

from __future__ import annotations

from random import Random

from minidsms.streamon.content_routing.attributes import Attributes
from minidsms.streamon.content_routing.classifiers import Classifier, Reading
from minidsms.streamon.content_routing.routes import MOST_CLASSIFIERS, Routes


def random_routes(filters: int, attributes: Attributes, rng: Random) -> Routes:
    """One to three orders of the filters, by one or two attributes."""
    readings = attributes.readings()
    classifiers = []
    for column, reading in rng.choices(readings, k=rng.randint(1, MOST_CLASSIFIERS)):
        buckets = rng.randint(2, 24)
        bounds = sorted(float(rng.randint(-5, 50)) for _ in range(buckets - 2)) if reading is Reading.RANGE else []
        classifiers.append(Classifier(column, attributes.fields[column].name, reading, buckets, tuple(bounds)))
    cells = 1
    for each in classifiers:
        cells *= each.buckets
    orders = tuple(tuple(rng.sample(range(filters), filters)) for _ in range(rng.randint(1, 3)))
    table = bytes(rng.randrange(len(orders)) for _ in range(cells))
    return Routes(orders[0], tuple(classifiers), orders, table)
