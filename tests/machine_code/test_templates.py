"""Forms of templates: the code of their constants, kept under them, compiled here or by the second process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minidsms.machine_code import templates
from minidsms.machine_code.templates import Template, form_at, template

KERNELS = """
from __future__ import annotations
from minidsms.machine_code import helper, int64
from minidsms.machine_code.templates import template

STEP = 1
NAMES = (0,)

@helper
def stepped(x):
    return x + STEP

@template("STEP", "NAMES", gain=0.5)
def walk(x: int) -> int:
    y = stepped(int64(x))
    for n in NAMES:
        y = y * 10 + n
    return y
"""
SERIES = """
from __future__ import annotations
from minidsms.machine_code import helper, int64
from minidsms.machine_code.templates import series, template

PAIRS, DIGITS, FACTOR, DIGIT = (), (), 1, 0

@helper
def ended(y):
    return y

@helper
def digit(y):
    return digits(y * 10 + FACTOR * DIGIT)

digits = series(digit, "DIGITS", ("DIGIT",), ended)

@helper
def pair(y):
    return pairs(digits(y))

pairs = series(pair, "PAIRS", ("FACTOR", "DIGITS"), ended)

@template("PAIRS", gain=0.5)
def walk(y: int) -> int:
    return pairs(int64(y))
"""
UNROLLED = """
from templates_of_test import walk
print([walk.form(PAIRS=pairs).compiled()(7) for pairs in ((), ((2, ((1,), (3,))), (1, ((9,),)), (3, ())))])
"""
COMPILED = """
import sys
from templates_of_test import walk
forms = [walk.form(STEP=1, NAMES=(3,)), walk.form(STEP=5, NAMES=(3, 4))]
assert forms[0] is walk.form(NAMES=(3,), STEP=1)
print([form.code() is None for form in forms], [form.compiled()(1) for form in forms], "numba" in sys.modules)
"""
SHARED = """
from templates_of_test import walk
forms = [walk.form(STEP=step, NAMES=(n,)) for step, n in ((5, 3), (5, 4), (6, 4))]
one, two, other = (form.definition.function.__globals__["stepped"] for form in forms)
print(one is two, two is other, [form.compiled()(1) for form in forms])
"""
BESIDE = """
import sys, time
from templates_of_test import walk
form = walk.form(STEP=2, NAMES=(7,))
assert form.code() is None and not form.is_awaited
form.compile_beside()
assert form.is_awaited
while form.is_awaited:
    form.code()
    time.sleep(0.01)
print(form.code()(1), form.has_failed, "numba" in sys.modules)
"""
KILLED = """
import time
from minidsms.machine_code import ahead
from templates_of_test import walk
begin, killed = ahead._process, []
def begun(arguments):
    process = begin(arguments)
    if len(killed) < 2:
        killed.append(process)
        process.kill()
    return process
ahead._process = begun
forms = [walk.form(STEP=step, NAMES=(7,)) for step in (2, 3, 4)]
with ahead._lock:  # the second process is to make two
    for form in forms:
        form.compile_beside()
while any(form.is_awaited for form in forms):
    for form in forms:
        form.code()
    time.sleep(0.01)
print([form.has_failed for form in forms], forms[2].code()(1))
"""
ELSEWHERE = """
import os, sys
sys.path += [b"bytes", 7]
{}
from templates_of_test import walk
form = walk.form(STEP=2, NAMES=(7,))
form.compile_beside()
print(form.has_failed)
"""
ALONE = """
from templates_of_test import walk
form = walk.form(STEP=2, NAMES=(7,))
form.compile_beside()
print(form.code(), form.has_failed)
"""
LEFT = """
from templates_of_test import walk
walk.form(STEP=2, NAMES=(7,)).compile_beside()
"""
ONE_OF_TWO = """
import os
from minidsms.machine_code import ahead, store
from templates_of_test import walk
store.kept_in()
forms = [walk.form(STEP=step, NAMES=(7,)) for step in (2, 3)]
process = ahead._process([form.place for form in forms])
print(os.getsid(process.pid) == process.pid, end=" ")
process.stdin.close()
print(process.wait(), [form.code() is None for form in forms])
"""
AT_WORK_ELSEWHERE = """
from minidsms.machine_code import ahead, store
from templates_of_test import walk
form = walk.form(STEP=2, NAMES=(7,))
with store.alone(form.definition.name):
    process = ahead._process([form.place])
    process.stdin.close()
    print(process.wait(), form.code())
"""
needs_two_processors = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="there is no second processor to compile on"
)


def run(folder: Path, program: str, kernels: str = KERNELS, **environment: str) -> str:
    (folder / "templates_of_test.py").write_text(kernels)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
            **environment,
        },
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_each_form_is_kept_with_the_constants_of_its_helpers_too(tmp_path: Path) -> None:
    assert run(tmp_path, COMPILED) == "[True, True] [23, 634] True"
    assert run(tmp_path, COMPILED) == "[False, False] [23, 634] False"


def test_forms_share_the_helpers_that_ask_for_the_same_constants(tmp_path: Path) -> None:
    assert run(tmp_path, SHARED) == "True False [63, 64, 74]"


def test_a_series_does_the_same_for_each_item_with_its_values_as_constants(tmp_path: Path) -> None:
    assert run(tmp_path, UNROLLED, SERIES) == "[7, 7269]"


def test_the_second_process_compiles_what_it_is_asked_for(tmp_path: Path) -> None:
    assert run(tmp_path, ALONE, MINIDSMS_COMPILE_AHEAD="0") == "None True"
    if len(os.sched_getaffinity(0)) > 1:
        assert run(tmp_path, BESIDE, MINIDSMS_COMPILE_AHEAD="1") == "37 False False"


@needs_two_processors
def test_a_form_that_ends_the_second_process_fails_and_those_behind_it_are_asked_for_again(tmp_path: Path) -> None:
    assert run(tmp_path, KILLED, MINIDSMS_COMPILE_AHEAD="1") == "[True, True, False] 57"


@needs_two_processors
def test_a_place_of_modules_that_is_none_fails_no_call(tmp_path: Path) -> None:
    gone = "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); sys.path.append('relative')"
    assert run(tmp_path, ELSEWHERE.format(""), MINIDSMS_COMPILE_AHEAD="1") == "False"
    assert run(tmp_path, ELSEWHERE.format(gone), MINIDSMS_COMPILE_AHEAD="1") == "True"


@needs_two_processors
def test_a_form_is_finished_when_the_process_that_asked_has_ended(tmp_path: Path) -> None:
    run(tmp_path, LEFT, MINIDSMS_COMPILE_AHEAD="1", NUMBA_CACHE_DIR="cache")
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("cache/minidsms/templates_of_test.walk.*.kernel")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert run(tmp_path, "from templates_of_test import walk\nprint(walk.form(STEP=2, NAMES=(7,)).code()(1))") == "37"


def test_a_process_that_is_left_finishes_its_first_form_only_and_is_in_no_session_of_others(tmp_path: Path) -> None:
    assert run(tmp_path, ONE_OF_TWO) == "True 0 [False, True]"


def test_a_process_that_is_done_before_the_one_that_asked_ends_as_it_should(tmp_path: Path) -> None:
    program = "from minidsms.machine_code import ahead\nprint(ahead._process(['time:sleep']).wait())"
    assert run(tmp_path, program, NUMBA_CACHE_DIR=str(tmp_path)) == "0"


def test_a_process_that_is_left_waits_for_no_other_that_makes_the_same(tmp_path: Path) -> None:
    assert run(tmp_path, AT_WORK_ELSEWHERE) == "0 None"


def test_a_process_that_is_left_ends_in_time_whatever_it_does(tmp_path: Path) -> None:
    program = "import time\nfrom minidsms.machine_code import ahead\nahead.LINGER_S = 0.1\n"
    program += "ahead.compile_all = lambda names: time.sleep(3600)\nahead.main([])"
    assert run(tmp_path, program) == ""


def test_a_folder_of_kernels_that_has_been_removed_is_not_made_again_for_a_form(tmp_path: Path) -> None:
    removes = ONE_OF_TWO.replace("process =", "shutil.rmtree(store.kept_in().parent)\nprocess =")
    assert run(tmp_path, "import shutil" + removes) == "True 0 [True, True]"
    assert not (tmp_path / "cache").exists()


def test_a_form_is_found_again_by_its_place() -> None:
    from minidsms.kernels.streams_join import join_streams

    pipelines = ((0, (1, "x")),)
    form = join_streams.form(
        KEYS=((0,), (1,)), COLUMNS=((8, False),), NETS=False, DELETES=False, OUTER=False, PIPELINES=pipelines
    )
    assert form_at(form.place) is form


def test_constants_are_those_of_the_template_and_of_its_module() -> None:
    def walk(x: int) -> int:
        return x

    made = template("KERNELS", gain=0.5)(walk)
    assert isinstance(made, Template)
    with pytest.raises(TypeError, match="has the constants KERNELS"):
        made.form(OTHER=1)
    with pytest.raises(TypeError, match="the constant NOBODY, which its module has not"):
        template("NOBODY", gain=0.5)(walk)


def test_a_process_remembers_so_many_forms_without_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(x: int) -> int:
        return x

    monkeypatch.setattr(templates, "MOST_KNOWN", 3)
    made = template("KERNELS", gain=0.5)(walk)
    assert isinstance(made, Template)
    forms = [made.form(KERNELS=number) for number in range(3)]
    forms[1]._code = abs
    assert made.form(KERNELS=0) is forms[0]
    made.form(KERNELS=3)
    assert made.form(KERNELS=1) is forms[1] and made.form(KERNELS=0) is not forms[0]
