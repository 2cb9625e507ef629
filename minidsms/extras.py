"""Libraries that are not installed with minidsms."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from minidsms.cql.errors import Error


def library(name: str, what: str, extra: str = "") -> Any:
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
        raise missing(name, what, extra) from None


def check_installed(name: str, what: str, extra: str = "") -> None:
    """As `library`, without loading it."""
    if importlib.util.find_spec(name) is None:
        raise missing(name, what, extra)


def missing(name: str, what: str, extra: str = "") -> Error:
    """The error for a module that is not there, which says how to install it."""
    package = name.removeprefix("google.").partition(".")[0].replace("_", "-")
    wanted = f"'minidsms[{extra}]'" if extra else package
    return Error(f"{what} needs the package {package}, which is not installed\nhelp: pip install {wanted}")
