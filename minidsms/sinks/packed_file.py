"""Answers in compressed files, as their names say: `.gz`, `.bz2`, `.xz` and `.zst`.

Invariant: the bytes depend on the lines alone, however these come: a stretch of them is compressed by itself, and all
four formats are read one stretch behind the other.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from minidsms.sinks.destination import Destination

STRETCH = 1 << 20
"""Bytes that are compressed together."""
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, 6, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
}


class PackedFile(Destination):
    """One file being written, compressed as its name says."""

    def __init__(self, path: str) -> None:
        self._compress = next(c for ending, c in _COMPRESS.items() if path.lower().endswith(ending))
        self._waiting = bytearray()
        super().__init__(path)

    def write(self, data: Any) -> None:
        """Append bytes."""
        self._waiting += data
        while len(self._waiting) > STRETCH:
            self._pack()

    def _pack(self) -> None:
        data = bytes(self._waiting[:STRETCH])
        del self._waiting[:STRETCH]
        super().write(self._compress(data))

    def publish(self) -> None:
        """Put the file in its place."""
        try:
            self._pack()
        except BaseException:
            self.discard()
            raise
        super().publish()
