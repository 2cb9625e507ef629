"""The change detectors by name, as `SET change_detection = ..` gives them. They load when first used.

off       conditions change unseen, and windows fill with what is new
counts    what execution counts anyway tells changes: drop rates by place, shares of inputs, work per element
auto      counts, and CUSUM over profile tuples, which sees what no tuple that is executed tells
others    counts, and that detector over profile tuples; orders are analysed after a change only, as published

`bound` is no choice but what k-Mon's monitors are made of: drop rates have no bound.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from minidsms.settings import DETECTORS, SettingValues
from minidsms.streamon.change_detection.contracts import ChangeDetectors, Tuning
from minidsms.streamon.contracts import Evaluate, OrderingAlgorithm

NAMES = (*DETECTORS, "bound")


def class_named(name: str, folder: str = "change_detection") -> Any:
    """The class of `beta_cusum.py` is BetaCusum."""
    return getattr(importlib.import_module(f"minidsms.streamon.{folder}.{name}"), name.title().replace("_", ""))


def detectors(name: str, m: int, **tuned: Any) -> ChangeDetectors:
    """Detectors of this name over m streams. tuned: see `Tuning`."""
    return cast(ChangeDetectors, class_named(name)(Tuning(m, **tuned)))


@dataclass(frozen=True)
class ChangeDetection:
    """How changes are noticed: the settings as they are when a query is registered.

    choice: what change_detection says.  block: profile tuples that make an item.  training, threshold: None takes the
    detector's own.
    """

    choice: str
    block: int
    training: int | None
    threshold: float | None
    confidence: float
    seed: int

    @classmethod
    def of(cls, settings: SettingValues) -> ChangeDetection:
        """Read the settings."""
        return cls(
            str(settings["change_detection"]),
            int(settings["detector_block"]),
            settings["detector_training"],
            settings["detector_threshold"],
            float(settings["detector_confidence"]),
            int(settings["seed"]),
        )

    @property
    def uses_counts(self) -> bool:
        """What execution counts tells changes."""
        return self.choice != "off"

    @property
    def detector(self) -> str | None:
        """The name of the detector over profile tuples, if there is one."""
        if self.choice == "auto":
            return "cusum"
        return self.choice if self.choice in DETECTORS else None

    @property
    def text(self) -> str:
        """What watches, in words."""
        return "counts" if self.detector is None else f"counts and {self.detector}"

    def monitored(self, algorithm: OrderingAlgorithm, window: int) -> OrderingAlgorithm:
        """The algorithm, as it is or with detectors around it. window: profile tuples that it keeps."""
        if self.detector is None or algorithm.wanted().evaluate is Evaluate.NOTHING:
            return algorithm
        from minidsms.streamon.change_detection.monitored import Monitored

        make = partial(
            detectors,
            self.detector,
            threshold=self.threshold,
            training=self.training,
            confidence=self.confidence,
            seed=self.seed,
        )
        return Monitored(algorithm, make, window, self.block, analyses_always=self.choice == "auto")
