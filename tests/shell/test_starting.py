"""The prompt stands before the engine behind it is loaded."""

from __future__ import annotations

import subprocess
import sys


def test_nothing_of_the_engine_is_loaded_before_the_prompt_stands() -> None:
    program = """
import sys
from minidsms.shell.configuration import load_configuration
from minidsms.shell.interactive import InteractiveShell
from minidsms.process.safety import Safety
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import DummyOutput

with create_app_session(input=DummyInput(), output=DummyOutput()):
    InteractiveShell(load_configuration("/dev/null", {"XDG_STATE_HOME": "/nonexistent"}), Safety(True))
print([name for name in ("numpy", "numba", "pyarrow", "lark", "rich", "networkx") if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
