"""numba's compiler with the passes that kernels need, and what it has answered once.

Kernels have no closures, generators or lists, and nothing in them counts references: half of numba's passes find
nothing to do, and each of the others counts the uses of all variables anew. Without these, and with answers that are
kept, a kernel takes two thirds of the time.

Invariant: a kernel computes what it does by numba's own passes; most become the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba.core import cgutils, compiler, lowering, types, untyped_passes
from numba.core.analysis import dead_branch_prune
from numba.core.ir_utils import build_definitions
from numba.core.rewrites.registry import rewrite_registry
from numba.core.ssa import reconstruct_ssa
from numba.core.typed_passes import NativeLowering, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.np import arrayobj

from minidsms.machine_code.parts import Part


@contextmanager
def remembered() -> Iterator[None]:
    """Within, what an operator or a function returns for types is asked of numba once in a process.

    It goes through all that an operator may mean for each instruction, of which a kernel has thousands.
    """
    functions: Any = types.BaseFunction
    ask = functions.get_call_type

    def answer(function: Any, context: Any, arguments: Any, named: Any) -> Any:
        key = function, tuple(arguments), tuple(dict(named).items())
        if key not in _answers:
            _answers[key] = ask(function, context, arguments, named)
        return _answers[key]

    functions.get_call_type = answer
    try:
        yield
    finally:
        functions.get_call_type = ask


_answers: dict[tuple[Any, ...], Any] = {}


class KernelCompiler(compiler.CompilerBase):
    """numba's compiler."""

    def define_pipelines(self) -> list[_Passes]:
        """The only one there is."""
        return [_Passes()]


class PartCompiler(KernelCompiler):
    """The same, into a `Part`."""

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing_context, target_context, library, *rest)
        self.state.library = Part(target_context.codegen(), "part")


class _Passes:
    """What numba asks of a pipeline."""

    pipeline_name = "kernel"

    def __init__(self) -> None:
        self.exec_times: dict[str, Any] = {}

    def run(self, state: Any) -> None:
        """From Python's instructions to LLVM's."""
        for each in _passes():
            each.run_pass(state)


@cache
def _passes() -> tuple[Any, ...]:
    return (
        untyped_passes.TranslateByteCode(),
        untyped_passes.FixupArgs(),
        untyped_passes.IRProcessing(),
        untyped_passes.RewriteSemanticConstants(),
        _DeadBranches(),
        _Rewrites("before-inference"),
        _SingleAssignments(),
        _DeadBranches(),
        NopythonTypeInference(),
        _NoPhis(),
        _Rewrites("after-inference"),
        _Lowering(),
        NoPythonBackend(),
    )


class _DeadBranches:
    """Leave out what a constant rules out."""

    def run_pass(self, state: Any) -> None:
        dead_branch_prune(state.func_ir, state.args)


class _Rewrites:
    """Write what has constants, as indices, in numba's forms for these."""

    def __init__(self, kind: str) -> None:
        self._rules = rewrite_registry.rewrites[kind]

    def run_pass(self, state: Any) -> None:
        blocks = state.func_ir.blocks
        for each in self._rules:
            rule, waiting = each(state), list(blocks)
            while waiting:
                place = waiting.pop()
                if rule.match(state.func_ir, blocks[place], state.typemap, state.calltypes):
                    blocks[place] = rule.apply()
                    waiting.append(place)


class _SingleAssignments:
    """Make variables that are assigned once."""

    def run_pass(self, state: Any) -> None:
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)


class _NoPhis(PreLowerStripPhis):
    """Assign them in the blocks before."""

    def run_pass(self, state: Any) -> None:
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)


class _Lowering(NativeLowering):
    @property
    def lowering_class(self) -> Any:
        return _Lower


class _Lower(lowering.Lower):
    """Nothing is done about variables that get another value or end: they are memory that LLVM makes registers of.

    Items of arrays are read and written where they lie; numba writes the description of the array to memory first.
    """

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        return cgutils.alloca_once(self.builder, lltype, name=name)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        array, of_index = signature.args
        if not _is_item(array, of_index):
            return super().lower_getitem(resty, expr, value, index, signature)
        item = arrayobj.load_item(self.context, self.builder, array, self._place(array, of_index, value, index))
        return self.context.cast(self.builder, item, array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        array, of_index, of_value = signature.args
        if not _is_item(array, of_index):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        context, builder = self.context, self.builder
        value = context.cast(builder, self.loadvar(value_var.name), self.typeof(value_var.name), of_value)
        place = self._place(array, of_index, target_var, index_var)
        arrayobj.store_item(context, builder, array, context.cast(builder, value, of_value, array.dtype), place)
        return None

    def _place(self, array: Any, of_index: Any, target: Any, index: Any) -> Any:
        """The address of an item."""
        context, builder = self.context, self.builder
        model, described = context.data_model_manager[array], self.loadvar(target.name)
        data, shape = model.get(builder, described, "data"), model.get(builder, described, "shape")
        lengths = cgutils.unpack_tuple(builder, shape, array.ndim)
        given = context.cast(builder, self.loadvar(index.name), self.typeof(index.name), of_index)
        is_one = not isinstance(of_index, types.BaseTuple)
        values = (given,) if is_one else cgutils.unpack_tuple(builder, given, array.ndim)
        indices = [
            arrayobj.fix_integer_index(context, builder, kind, value, length)
            for kind, value, length in zip(_kinds(of_index), values, lengths)
        ]
        return cgutils.get_item_pointer2(context, builder, data, lengths, None, array.layout, indices)


def _is_item(array: Any, of_index: Any) -> bool:
    """Not a part of the array, nor of something else."""
    return (
        isinstance(array, types.Array)
        and array.layout == "C"
        and len(_kinds(of_index)) == array.ndim
        and all(isinstance(kind, types.Integer) for kind in _kinds(of_index))
    )


def _kinds(of_index: Any) -> tuple[Any, ...]:
    """The types of the indices."""
    return getattr(of_index, "types", (of_index,))
