"""Files under way beside their places, `.name.0123456789ab.part`, and what ended processes have left of them.

Invariant: such a file is locked as long as it is being written, so that one which is not locked is nobody's. Where
files cannot be locked nothing is removed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
from collections.abc import Iterator
from typing import IO, cast

from minidsms.sinks.locking import try_hold

_log = logging.getLogger("minidsms.sinks")
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{12}\.part")


def begin(target: str) -> tuple[str, IO[bytes]]:
    """A new file to be renamed to the target: its path and the file. Raises OSError."""
    folder, name = os.path.split(target)
    while True:
        path = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.part")
        file = cast("IO[bytes]", open(path, "xb"))  # noqa: SIM115 closed with what holds it
        try:
            # Between making and locking it, it looks like one that was left: whoever removes those was quicker.
            if try_hold(file.fileno()) is not False and os.fstat(file.fileno()).st_nlink:
                return path, file
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            file.close()
            raise
        file.close()


def remove_abandoned(folder: str) -> Iterator[str]:
    """Remove what processes have left in a folder that ended while they wrote; a note on each."""
    try:
        with os.scandir(folder or ".") as entries:
            found = [e.path for e in entries if _UNFINISHED.fullmatch(e.name) and e.is_file(follow_symlinks=False)]
    except OSError:
        return
    for path in found:
        with contextlib.suppress(OSError):
            number = os.open(path, os.O_RDWR)
            try:
                if try_hold(number):
                    size = os.fstat(number).st_size
                    os.unlink(path)
                    note = f"removed {path}: {size:,} bytes of a process that ended before its file was whole"
                    _log.warning(note)
                    yield note
            finally:
                os.close(number)
