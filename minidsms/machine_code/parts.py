"""What numba compiles of the functions that kernels call: modules to be linked, and no more.

numba makes each function that another calls ready to be called by itself: it is optimised, then made machine code.
Kernels are optimised as a whole once everything is linked into them, so that is work for nothing: a third and more of
the time that a large kernel takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary


class Part(JITCodeLibrary):
    """A function as it was lowered, and what it calls beside it: whoever is made of parts links each once."""

    def add_ir_module(self, ir_module: Any) -> None:
        """The only one."""
        module = llvm.parse_assembly(cgutils.normalize_ir_text(str(ir_module)))
        self._optimize_functions(module)
        self._final_module = module

    def finalize(self) -> None:
        """Left to those who link it; nobody runs it, so no engine gets it."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: the symbol is defined nowhere."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Who is told of the environment of a function, which is one for errors of Python's: kernels raise none."""
        return _NO_ENVIRONMENTS


class _NoEnvironments:
    def set_env(self, name: str, environment: object) -> None:
        """Not needed."""


_NO_ENVIRONMENTS = _NoEnvironments()


def linked(library: Any) -> Iterator[Any]:
    """The modules of all that a library calls, and of what this calls, each once."""
    waiting, seen = list(library._linking_libraries), set()
    while waiting:
        each = waiting.pop(0)
        if each not in seen:
            seen.add(each)
            is_part = isinstance(each, Part)
            yield each._final_module if is_part else each._get_module_for_linking()
            waiting += each._linking_libraries if is_part else ()
