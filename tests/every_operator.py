"""Other functions around what operators do in each turn, which every class of them has of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from minidsms.engine.by_hand import ByHand
from minidsms.operators.operator import Operator


@contextlib.contextmanager
def wrapped_turns(wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Let every turn of an operator be taken by what `wrap` makes of the function that takes it."""
    pass_on = ByHand.pass_on

    def passing(self: ByHand, until: int) -> bool:
        with mock.patch.object(self, "_stations", [(wrap(take), *rest) for take, *rest in self._stations]):
            return pass_on(self, until)

    kinds: list[type[Operator]] = [Operator]
    with contextlib.ExitStack() as patches:
        patches.enter_context(mock.patch.object(ByHand, "pass_on", passing))
        for kind in kinds:
            kinds += kind.__subclasses__()
            patches.enter_context(mock.patch.object(kind, "_run_slice", wrap(vars(kind)["_run_slice"])))
        yield
