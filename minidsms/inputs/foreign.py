"""What others made and the engine is about to read: Arrow buffers that may lie about themselves, objects whose methods
may raise.

Invariant: nothing is read from an Arrow array before its offsets, lengths and indices are known to point inside its
buffers; what the data's own methods raise becomes a reason in words. Lengths that a producer gives through Arrow's C
interface carry no sizes and have to be believed: whoever calls `push` is trusted so far.  docs/security.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def check_whole(data: Any) -> None:
    """Check all of an Arrow array or batch from a file or another program: pa.ArrowInvalid where it is malformed."""
    while isinstance(data, pa.ExtensionArray):
        data = data.storage  # Arrow ends the process over an extension of an extension
    data.validate(full=True)


def check_bounds(array: Any) -> None:
    """Check that no value of an Arrow array lies outside its buffers, else pa.ArrowInvalid. Texts need not be UTF-8.

    As `check_whole`, but a fifth of its time for texts: an encoding is judged when the text is read.
    """
    kind = array.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        check_whole(array)
        return
    array.validate()
    if not len(array):
        return
    width = np.dtype(np.int32 if pa.types.is_string(kind) else np.int64)
    offsets = np.frombuffer(array.buffers()[1], width, len(array) + 1, array.offset * width.itemsize)
    if bool((offsets[1:] < offsets[:-1]).any()):
        raise pa.ArrowInvalid("the offsets of its texts fall")


def raised(error: BaseException) -> str:
    """An exception of somebody else's code in a few words; its own text may raise as well."""
    try:
        text = " ".join(str(error).split())[:200]
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
