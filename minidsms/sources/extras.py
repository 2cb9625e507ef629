"""Libraries that only some sources need."""

from __future__ import annotations

import importlib
from typing import Any

from minidsms.cql.errors import Error


def library(name: str, what: str, extra: str) -> Any:
    """The module. what: what needs it.  extra: of minidsms, which brings it. Error where it is not installed.

    >>> library("no_such_module", "kafka://", "kafka")
    Traceback (most recent call last):
    ...
    minidsms.cql.errors.Error: kafka:// needs the package no-such-module, which is not installed
    help: pip install 'minidsms[kafka]'
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        package, hint = (
            name.removeprefix("google.").partition(".")[0].replace("_", "-"),
            f"pip install 'minidsms[{extra}]'",
        )
        raise Error(f"{what} needs the package {package}, which is not installed\nhelp: {hint}") from None
