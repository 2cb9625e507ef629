"""Static: the filters as they were written, or as they were told to stand."""

from __future__ import annotations

from minidsms.streamon.filter_ordering.unprofiled import Unprofiled


class Static(Unprofiled):
    """See `OrderingAlgorithm`."""
