"""Whether another process of this machine is still there."""

from __future__ import annotations

import os


def has_ended(process: int) -> bool:
    """Whether there is no process of this number any more; False where nobody can know."""
    if os.name != "posix" or process <= 0:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # there is one, of somebody else's; or there cannot be one
    return False
