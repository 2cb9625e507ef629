"""Large parts of a checkpoint's entries, in files of their own, which the next checkpoint need not write again.

A block is a file `length-digest.block` in the folder of a log, named after its content: how many bytes, and their
XXH3-128. An entry whose payload stands partly in blocks says so in its header, "pieces": of what follows the header
in their order, a number of bytes that stand behind it in the entry, or a block's name. What a block holds is compared
with its name whenever it is read. A checkpoint links the blocks that the log it is made of has, too, and copies them
where the file system knows no links; a file stays as long as one of the logs has it.

Invariant: a block does not change once it is there. It and its name are synced before `minidsms.json` names its log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import xxhash

from minidsms.archive.atomic import sync_file, sync_folder
from minidsms.cql.errors import Error
from minidsms.durability.segments import Part, mapped
from minidsms.elements import AnyArray, Int64Array

LEAST_BYTES = 1 << 18
"""A part of fewer stands in the entry itself."""
ARRAY_BYTES = 1 << 21
"""An array is cut into pieces of so many."""
_NAME = re.compile(r"(\d+)-[0-9a-f]{32}\.block")

Piece: TypeAlias = Sequence[Part] | str
"""What may become a block, in parts, or the name of one that stands in the log that a checkpoint is made of."""


def name_of(parts: Sequence[Part]) -> str:
    """What a block with this content is called."""
    digest = xxhash.xxh3_128()
    for part in parts:
        digest.update(part)
    return f"{sum(map(len, parts))}-{digest.hexdigest()}.block"


def blocks(folder: str) -> list[str]:
    """The names of those in the folder of a log."""
    return sorted(filter(_NAME.fullmatch, os.listdir(folder)))


def read_block(folder: str, name: str) -> memoryview:
    """What a block holds. Error where it is missing, or does not hold what its name says."""
    path = os.path.join(folder, name)
    data = mapped(path) if _NAME.fullmatch(name) else memoryview(b"")
    if name_of((data,)) != name:
        raise Error(
            f"{path!r} is damaged: it does not hold what its name says\nhelp: open a copy that db.backup(..) has made"
        )
    return data


def is_there(folder: str, name: str) -> bool:
    """Whether a folder has a block of this name."""
    return os.path.exists(os.path.join(folder, name))


def holds(folder: str, name: str, parts: Sequence[Part]) -> bool:
    """Whether a block holds this and nothing else: the digest in its name is no cryptographic one."""
    data, at = mapped(os.path.join(folder, name)), 0
    for part in filter(len, parts):
        end = at + len(part)
        if end > len(data) or not np.array_equal(np.frombuffer(data[at:end], np.uint8), np.frombuffer(part, np.uint8)):
            return False
        at = end
    return at == len(data)


def cut(nbytes: int, n: int, numbers: Int64Array | None = None) -> list[int]:
    """Where pieces of an array of n elements, nbytes in all, begin and end. numbers: of its elements, rising; then an
    element that stays while those before it leave is in the same piece.

    >>> cut(3 << 21, 3), cut(16, 2), cut(4 << 21, 4, np.arange(5, 9))
    ([0, 1, 2, 3], [0, 2], [0, 1, 2, 3, 4])
    >>> cut(4 << 19, 1 << 18, np.arange(100, 100 + (1 << 18)))
    [0, 262044, 262144]
    """
    size = max(1, ARRAY_BYTES * n // max(nbytes, 1))
    if numbers is None or n == 0:
        return [*range(0, n, size), n]
    span = int(numbers[-1] - numbers[0]) + 1
    step = 1 << max(0, (size * span // n).bit_length() - 1)  # a power of two: as n changes, it seldom does
    bounds = np.arange(int(numbers[0]) // step + 1, int(numbers[-1]) // step + 1) * step
    return [0, *np.searchsorted(numbers, bounds).tolist(), n]


class BlockWriter:
    """What writes the blocks of a checkpoint's log. source: the folder of the log that it is made of."""

    def __init__(self, folder: str, source: str) -> None:
        self.linked_bytes = 0
        """Of blocks that need not be written."""
        self._folder, self._source = folder, source
        self._names: set[str] = set()
        self._new: list[str] = []

    def placed(self, pieces: Sequence[Piece]) -> tuple[dict[str, list[int | str]], list[Part]]:
        """Let what is large stand in blocks: (what the header says of it, what follows the header). Raises OSError."""
        told: list[int | str] = []
        rest: list[Part] = []
        for piece in pieces:
            name = piece if isinstance(piece, str) else self._put(piece)
            if isinstance(piece, str):
                self._link(piece)
            if name is not None:
                told.append(name)
                continue
            nbytes = sum(map(len, piece))
            rest += piece
            if told and isinstance(told[-1], int):
                nbytes += told.pop()  # type: ignore[operator]
            told.append(nbytes)
        return ({} if all(isinstance(each, int) for each in told) else {"pieces": told}), rest

    def _put(self, parts: Sequence[Part]) -> str | None:
        """Write a block; its name, or None where it is too small, or another content is called so."""
        if sum(map(len, parts)) < LEAST_BYTES:
            return None
        name = name_of(parts)
        if name in self._names:
            return name if holds(self._folder, name, parts) else None
        if not is_there(self._source, name):
            self._write(name, parts)
        elif holds(self._source, name, parts):
            self._link(name)
        else:
            return None
        return name

    def _link(self, name: str) -> None:
        if name in self._names:
            return
        path = os.path.join(self._source, name)
        try:
            os.link(path, os.path.join(self._folder, name))
        except OSError:  # the file system has none, or no more of this file
            self._write(name, (read_block(self._source, name),))
        else:
            self._names.add(name)
            self.linked_bytes += os.path.getsize(path)

    def _write(self, name: str, parts: Sequence[Part]) -> None:
        path = os.path.join(self._folder, name)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            for part in parts:
                left = memoryview(part)
                while left:
                    left = left[os.write(handle, left) :]
        finally:
            os.close(handle)
        self._names.add(name)
        self._new.append(path)

    def sync(self) -> None:
        """Let them and their names be on disk. Raises OSError."""
        for path in self._new:
            sync_file(path)
        if self._names:
            sync_folder(self._folder)
        self._new = []


class Content:
    """What follows the header of an entry, wherever it stands; blocks are read when they are asked for.

    told: "pieces" of the header.  rest: what follows the header in the entry.  folder: of its log.
    """

    def __init__(self, told: Sequence[int | str] | None, rest: memoryview, folder: str) -> None:
        self._told = [len(rest)] if told is None else told
        self._rest, self._folder = rest, folder
        self._left: list[memoryview] = []
        self._reading = _read(self._told, rest, folder)

    @property
    def pieces(self) -> list[Piece]:
        """As a checkpoint may hold it again."""
        found: list[Piece] = []
        at = 0
        for each in self._told:
            if isinstance(each, str):
                found.append(each)
            else:
                found.append((self._rest[at : at + each],))
                at += each
        return found

    @property
    def stands_apart(self) -> bool:
        """All of it stands in a block."""
        return all(isinstance(each, str) for each in self._told)

    def whole(self) -> memoryview:
        """All of it. Error where a block is missing or damaged."""
        return _joined(list(_read(self._told, self._rest, self._folder)))

    def take(self, nbytes: int) -> memoryview:
        """So many of its bytes, behind those that have been taken; they may be changed where they are a copy."""
        found: list[memoryview] = []
        while nbytes > 0:
            piece = self._left.pop() if self._left else next(self._reading, memoryview(b""))
            if not piece:
                raise ValueError(f"{nbytes} bytes are missing")
            found.append(piece[:nbytes])
            if len(piece) > nbytes:
                self._left.append(piece[nbytes:])
            nbytes -= len(found[-1])
        return _joined(found)

    def check(self) -> None:
        """Error where a block is missing or damaged."""
        for _ in _read(self._told, self._rest, self._folder):
            pass


def _read(told: Sequence[int | str], rest: memoryview, folder: str) -> Iterator[memoryview]:
    """The parts that are told of, one after the other. A `Content` refers to it; referred to itself, it would keep the
    segment that it stands in mapped."""
    at = 0
    for each in told:
        if isinstance(each, str):
            yield read_block(folder, each)
        else:
            yield rest[at : at + each]
            at += each


def _joined(pieces: Sequence[memoryview]) -> memoryview:
    """One behind the other, in memory of their own where they are not one; other threads go on meanwhile, which the
    join() of bytes has wait.
    """
    if len(pieces) == 1:
        return pieces[0]
    found, at = np.empty(sum(map(len, pieces)), np.uint8), 0
    for piece in pieces:
        found[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    return found.data


def pieces_of(array: AnyArray, numbers: Int64Array | None = None) -> list[memoryview]:
    """The bytes of an array, in the order of C, cut along its first axis. numbers: see `cut`."""
    whole = np.ascontiguousarray(array)
    if not whole.size:
        return []
    at = cut(whole.nbytes, len(whole), numbers)
    return [whole[a:b].reshape(-1).view(np.uint8).data for a, b in pairwise(at) if a < b]
