"""Machine code belongs to instructions and constants, wherever these stand, and to nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from minidsms.machine_code.definition import definition_of

FIRST = "STEP = 2\n"
SECOND = "from first_layout import STEP\nWIDTH = 3 * STEP\n"
KERNELS = '''
"""Documentation."""
import math
import numpy as np
from minidsms.machine_code import helper, kernel
from second_layout import WIDTH

NAMES = (1, ("a", 2.5))
UNUSED = 7

@helper
def stepped(x):
    """What it does."""
    return x + WIDTH

@kernel("int64(int64)")
def walk(x):
    """What it does."""
    y = stepped(np.int64(x)) if NAMES[0] else int(math.floor(0.5))
    return y * 10
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("first_layout", "second_layout", "kernels_here"):
        sys.modules.pop(name, None)


def _digest(folder: Path, first: str = FIRST, second: str = SECOND, kernels: str = KERNELS) -> str:
    """Of `walk`, with these sources."""
    namespaces = {}
    for name, text in (("first_layout", first), ("second_layout", second), ("kernels_here", kernels)):
        module = ModuleType(name)
        sys.modules[name] = module
        exec(compile(text, str(folder / f"{name}.py"), "exec"), module.__dict__)
        namespaces[name] = module
    definition = definition_of(namespaces["kernels_here"].walk)
    assert definition is not None
    return definition.digest


def test_the_same_sources_have_the_same_digest(folder: Path) -> None:
    assert _digest(folder) == _digest(folder)


@pytest.mark.parametrize(
    "kernels",
    [
        KERNELS.replace("What it does.", "What it does now."),
        KERNELS.replace("NAMES =", "\n\n# A comment.\nNAMES ="),
        KERNELS.replace("UNUSED = 7", "UNUSED = 8"),
    ],
)
def test_words_lines_and_what_is_not_used_do_not_count(folder: Path, kernels: str) -> None:
    assert kernels != KERNELS
    assert _digest(folder, kernels=kernels) == _digest(folder)


@pytest.mark.parametrize(
    "kernels",
    [
        KERNELS.replace("y * 10", "y * 11"),
        KERNELS.replace("y * 10", "y - 10"),
        KERNELS.replace("y * 10", "y * 10.0"),
        KERNELS.replace("2.5", "2.0"),
        KERNELS.replace("NAMES = (1,", "NAMES = (True,"),
        KERNELS.replace("x + WIDTH", "x - WIDTH"),
        KERNELS.replace("np.int64(x)", "np.int32(x)"),
        KERNELS.replace("math.floor", "math.ceil"),
        KERNELS.replace("import math", "import cmath as math"),
        KERNELS.replace("@helper", "@helper(inline=True)"),
        KERNELS.replace('"int64(int64)"', '"int64(int8)"'),
    ],
)
def test_what_is_compiled_counts(folder: Path, kernels: str) -> None:
    assert kernels != KERNELS
    assert _digest(folder, kernels=kernels) != _digest(folder)


def test_a_constant_of_a_third_file_counts(folder: Path) -> None:
    assert _digest(folder, first="STEP = 4\n") != _digest(folder)
    assert _digest(folder, first="STEP = 1 + 1\n") == _digest(folder)
    assert _digest(folder, first="STEP = 6\n", second=SECOND.replace("3 *", "1 *")) == _digest(folder)


def test_what_cannot_be_told_from_another_of_its_kind_is_refused(folder: Path) -> None:
    with pytest.raises(TypeError, match="walk uses NAMES, a list: kernels take constants"):
        _digest(folder, kernels=KERNELS.replace('NAMES = (1, ("a", 2.5))', "NAMES = [1]"))
    with pytest.raises(TypeError, match="walk uses NAMES, a tuple"):
        _digest(folder, kernels=KERNELS.replace('("a", 2.5)', "[2.5]"))


def test_a_function_within_a_function_is_refused(folder: Path) -> None:
    text = (
        "from minidsms.machine_code import kernel\n"
        "def f(y):\n    @kernel('int64(int64)')\n    def g(x): return x + y\n"
        "f(1)"
    )
    with pytest.raises(TypeError, match="uses y of a function around it"):
        _digest(folder, kernels=text)
