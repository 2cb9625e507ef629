"""The state of operators as it is at one moment, copied while they go on.

A child of fork() copies it: for the child the system keeps every page as it was, and copies one before the parent
changes it. The child has no thread but the one that forked. It asks operators for their arrays, writes what of them is
in no block of the log (`blocks.py`) to a file that has no name, and ends; nothing else of what it has inherited is
touched.

Invariant: what has not been written to its end is taken for nothing, and whoever wants it has another way.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import mmap
import os
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from minidsms.durability import blocks
from minidsms.durability.blocks import Piece, holds, is_there, name_of, pieces_of
from minidsms.durability.segments import Part
from minidsms.elements import AnyArray
from minidsms.operators.resuming import Resuming
from minidsms.process.forking import without_abandoning

IS_POSSIBLE = sys.platform == "linux"
_END = struct.Struct("<Q8s")
_IS_WHOLE = b"is whole"
_MOST_S = 600.0
"""A child that takes longer is given up."""
_LOOKS_S = 0.002


@dataclass(frozen=True)
class KeptArray:
    """An array that is kept: its bytes, little-endian, in the order of C, in pieces one behind the other."""

    dtype: str
    shape: Sequence[int]
    pieces: Sequence[Piece]


def kept_arrays(operator: Resuming) -> dict[str, KeptArray]:
    """The state of an operator."""
    state = operator.state()
    numbers = operator.numbers(state)
    return {
        key: KeptArray(array.dtype.str, array.shape, [(piece,) for piece in pieces_of(array, numbers.get(key))])
        for key, array in state.items()
    }


class Copying:
    """Of some operators. What it gives of one is empty until `finish` has filled it."""

    def __init__(self) -> None:
        self._operators: list[Resuming] = []
        self._states: list[dict[str, KeptArray]] = []
        self._codes: list[list[AnyArray]] = []
        self._file: IO[bytes] | None = None
        self._child = 0

    def state_of(self, operator: Resuming) -> dict[str, KeptArray]:
        """What its `kept_arrays` will have been."""
        self._operators.append(operator)
        self._states.append({})
        self._codes.append([])
        return self._states[-1]

    def codes_of(self, operator: Resuming) -> list[AnyArray]:
        """What codes of texts its state will have held."""
        return self._codes[self._operators.index(operator)]

    def begin(self, folder: str, source: str) -> None:
        """Let a child copy what there is now, but for what stands in blocks in the folder of the log. The engine rests.
        OSError where there can be no file in the folder.
        """
        self._source = source
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  (closed by `end`)
        with contextlib.suppress(OSError), without_abandoning(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the other threads are not needed
            self._child = os.fork()
            if self._child == 0:
                self._end_as_child()

    def _end_as_child(self) -> None:
        status = 1
        try:
            gc.disable()  # what is no longer used may close what is the parent's
            assert self._file is not None
            number = self._file.fileno()
            os.closerange(3, number)  # above all the lock on the folder
            os.closerange(number + 1, os.sysconf("SC_OPEN_MAX"))
            self._write(self._file)
            status = 0
        finally:
            os._exit(status)

    def _write(self, file: IO[bytes]) -> None:
        told: list[Any] = []
        for operator in self._operators:
            arrays = kept_arrays(operator)
            told.append([(key, a.dtype, a.shape, [self._told(file, p) for p in a.pieces]) for key, a in arrays.items()])
            told.append([_written(file, np.ascontiguousarray(array).view(np.uint8).data) for array in operator.codes()])
        index = json.dumps(told).encode()
        file.write(index + _END.pack(len(index), _IS_WHOLE))

    def _told(self, file: IO[bytes], piece: Piece) -> str | tuple[int, int]:
        """A piece as a block of the log that has it, or where it begins and ends in the file."""
        assert not isinstance(piece, str)
        if sum(map(len, piece)) >= blocks.LEAST_BYTES:
            name = name_of(piece)
            if is_there(self._source, name) and holds(self._source, name, piece):
                return name
        return _written(file, *piece)

    def finish(self, go_on: Callable[[], None]) -> bool:
        """Fill what has been given; False where that cannot be. go_on: called while the child is at work; it may
        raise.
        """
        wait_s, until_s = _LOOKS_S, time.monotonic() + _MOST_S
        while self._is_at_work():
            go_on()
            if time.monotonic() > until_s:
                return False
            time.sleep(wait_s)
            wait_s = min(0.1, 1.5 * wait_s)
        assert self._file is not None
        size = self._file.seek(0, os.SEEK_END)
        if size < _END.size:
            return False
        data = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        length, end = _END.unpack_from(data, size - _END.size)
        if end != _IS_WHOLE:
            return False
        told = iter(json.loads(bytes(data[size - _END.size - length : size - _END.size])))
        for state, codes in zip(self._states, self._codes):
            for key, dtype, shape, pieces in next(told):
                state[key] = KeptArray(
                    dtype, shape, [p if isinstance(p, str) else (data[p[0] : p[1]],) for p in pieces]
                )
            codes += [np.frombuffer(data, np.int64, (end - begin) // 8, begin) for begin, end in next(told)]
        return True

    def _is_at_work(self) -> bool:
        if self._child:
            try:
                ended, _ = os.waitpid(self._child, os.WNOHANG)
            except ChildProcessError:  # another has waited for it
                ended = self._child
            self._child = 0 if ended else self._child
        return self._child != 0

    def end(self) -> None:
        """Let go of the child and of the file, but for the arrays in it."""
        if self._is_at_work():
            os.kill(self._child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._child, 0)
            self._child = 0
        if self._file is not None:
            self._file.close()


def _written(file: IO[bytes], *parts: Part) -> tuple[int, int]:
    """Where they begin and end in the file."""
    begin = file.tell()
    for part in parts:
        left = memoryview(part)
        while left:
            left = left[file.write(left) :]
    return begin, file.tell()


def nbytes_of(dtype: str, shape: Sequence[int]) -> int:
    """Of an array."""
    return math.prod(shape) * np.dtype(dtype).itemsize
