"""Bytes as they arrive to blocks of whole lines.

Invariant: the blocks do not depend on how the bytes were cut when they came; every byte is in one block, and a block
ends with its last line. A record is a line here: what opens a quote and does not close it in its line is broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

from minidsms.sources.blocks import Block, Marks, are_lines, opens_unclosed

LONGEST_LINE = 1 << 20
"""Bytes of a line without its end; a longer one cannot be read."""
_SHOWN = 1000
"""Bytes that are kept of one."""


class LineCutter:
    """The lines of one connection or file, counted from `first_line`; start: the byte it begins at."""

    def __init__(self, first_line: int = 1, start: int = 0) -> None:
        self._start = start
        self._rest: list[bytes] = []
        self.waiting = 0
        """Bytes of the line that has not ended."""
        self._line = first_line
        self._is_skipping = False

    def feed(self, data: bytes) -> list[Block]:
        """The lines that are whole now. A line too long is a broken block of its own, its end left out."""
        if self._is_skipping:
            end = data.find(b"\n") + 1
            self._start += end or len(data)
            if not end:
                return []
            self._is_skipping = False
            data = data[end:]
        end = data.rfind(b"\n") + 1
        blocks = self._whole(b"".join([*self._rest, data[:end]])) if end else []
        if end:
            self._rest, self.waiting = [], 0
        if end < len(data):
            self._rest.append(data[end:])
            self.waiting += len(data) - end
        if self.waiting > LONGEST_LINE:
            self._is_skipping = True
            blocks.append(self._too_long(b"".join(self._rest), self.waiting))
            self._rest, self.waiting = [], 0
        return blocks

    def _whole(self, lines: bytes) -> list[Block]:
        blocks, begin, at = [], 0, 0
        while at < len(lines):
            end = lines.rfind(b"\n", at, at + LONGEST_LINE + 1) + 1
            if not end:
                end = lines.find(b"\n", at) + 1
                if begin < at:
                    blocks.append(self._block(lines[begin:at], at - begin))
                blocks.append(self._too_long(lines[at : at + _SHOWN], end - at))
                begin = end
            at = end
        if begin < at:
            blocks.append(self._block(lines[begin:], at - begin))
        return blocks

    def _too_long(self, line: bytes, length: int) -> Block:
        return self._block(line[:_SHOWN] + b"\n", length, True)

    def end(self, is_broken: bool = False) -> list[Block]:
        """What is left when nothing more comes: a last line without its end. is_broken: more of it was to come."""
        data = b"".join(self._rest)
        self._rest, self.waiting = [], 0
        return [self._block(data + b"\n", len(data), is_broken)] if data else []

    def _block(self, data: bytes, length: int, is_broken: bool = False) -> Block:
        """length: the bytes it takes where it stands."""
        block = Block(data, self._line, is_broken, self._start)
        self._line += data.count(b"\n")
        self._start += length
        return block


def lines_apart(block: Block, marks: Marks) -> Iterator[Block]:
    """The block, cut so that no quoted field reaches beyond its line; such lines are broken blocks of their own."""
    if block.is_broken or marks.quote not in block.data or are_lines(block.data, marks):
        yield block
        return
    line = first = block.first_line
    whole: list[bytes] = []
    for data in BytesIO(block.data):
        if marks.quote in data and opens_unclosed(data, marks):
            if whole:
                yield Block(b"".join(whole), first)
            yield Block(data, line, True)
            whole, first = [], line + data.count(b"\n")
        else:
            whole.append(data)
        line += data.count(b"\n")
    if whole:
        yield Block(b"".join(whole), first)
