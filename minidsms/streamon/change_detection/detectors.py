"""The change detectors by name, as `SET change_detection = ..` gives them. They load when first used."""

from __future__ import annotations

import importlib
from typing import Any, cast

from minidsms.streamon.change_detection.contracts import ChangeDetectors

_FOLDER = "minidsms.streamon.change_detection"
_CLASSES = {
    "cusum": "Cusum",
    "beta_cusum": "BetaCusum",
    "adwin": "Adwin",
    "martingale": "Martingale",
    "meta": "Meta",
    "change_finder": "ChangeFinder",
}

NAMES = tuple(_CLASSES)


def detectors(name: str, m: int, **tuned: Any) -> ChangeDetectors:
    """Detectors of this name over m streams. tuned: threshold, training, confidence, seed."""
    made = getattr(importlib.import_module(f"{_FOLDER}.{name}"), _CLASSES[name])
    return cast(ChangeDetectors, made(m, **tuned))
