"""The files of rows that are out of memory: without a name, so that nothing is left of them however the process ends.

They stand in the temporary folder of the machine (`TMPDIR`).
"""

from __future__ import annotations

import shutil
import tempfile
from typing import IO


def new_file() -> IO[bytes]:
    """An empty one, whose writes are not held back. Raises OSError where none can be made."""
    return tempfile.TemporaryFile(prefix="minidsms-k-mon-", buffering=0)


def copy_of(file: IO[bytes]) -> IO[bytes]:
    """Another with the same bytes, and at its end. Raises OSError where there is no room for it."""
    made = new_file()
    try:
        file.seek(0)
        shutil.copyfileobj(file, made, 1 << 20)
    except BaseException:
        made.close()
        raise
    finally:
        file.seek(0, 2)
    return made
