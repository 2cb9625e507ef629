"""What numba compiles of the functions that kernels call: modules to be linked, and no more.

numba makes each function that another calls ready to be called by itself: it is optimised, then made machine code.
Kernels are optimised as a whole once everything is linked into them, so that is work for nothing: a third and more of
the time that a large kernel takes.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary


class Part(JITCodeLibrary):
    """A library that others link, as it was lowered."""

    def _optimize_final_module(self) -> None:
        """Left to those who link it."""

    def _finalize_final_module(self) -> None:
        """Nobody runs it, so no engine gets it."""
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: the symbol is defined nowhere."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    @property
    def codegen(self) -> Any:
        """Who is told of the environment of a function, which is one for errors of Python's: kernels raise none."""
        return _NO_ENVIRONMENTS


class _NoEnvironments:
    def set_env(self, name: str, environment: object) -> None:
        """Not needed."""


_NO_ENVIRONMENTS = _NoEnvironments()
