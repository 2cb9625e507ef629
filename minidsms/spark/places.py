"""Where archives lie that Spark reads and writes: where every process of it finds them."""

from __future__ import annotations

from minidsms.archive.storage import absolute
from minidsms.cql.errors import Error


def shared(folder: str) -> str:
    """A folder of archives, wherever a worker has begun. Error where it is this process's own."""
    place = absolute(folder)
    if place.startswith("memory:"):
        raise Error(
            f"{folder!r} is this process's own, and Spark's workers do not see it\nhelp: name a folder, or s3://"
        )
    return place
