"""What one process compiles the next one finds; what is not whole, or of other sources, is compiled anew."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minidsms.machine_code import store
from minidsms.machine_code.store import ObjectCode

KERNEL = """
from minidsms.machine_code import kernel
FACTOR = 3

@kernel("int64(int64)")
def threefold(x):
    return x * FACTOR
"""
USE = """
import sys
import kernels_of_test
print(kernels_of_test.threefold(14), "numba" in sys.modules)
"""


def _run(folder: Path, program: str = USE, source: str = KERNEL, **environment: str) -> str:
    (folder / "kernels_of_test.py").write_text(source)
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
            **environment,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    return run.stdout.strip()


def _kept(folder: Path) -> list[Path]:
    return sorted((folder / "cache").rglob("*.kernel"))


@pytest.fixture(scope="module")
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    assert _run(folder) == "42 True"
    return folder


@pytest.fixture
def kept_before(_compiled: Path, tmp_path: Path) -> Path:
    """A folder in which another process has compiled the kernel."""
    return Path(shutil.copytree(_compiled, tmp_path / "kept"))


def test_what_is_kept_runs_without_the_compiler(kept_before: Path) -> None:
    assert _run(kept_before) == "42 False"
    assert _run(kept_before, source="# A line more.\n" + KERNEL) == "42 False"


def test_other_constants_are_other_code_and_take_the_place_of_the_old(kept_before: Path) -> None:
    before = _kept(kept_before)
    assert _run(kept_before, source=KERNEL.replace("FACTOR = 3", "FACTOR = 4")) == "56 True"
    after = _kept(kept_before)
    assert len(before) == len(after) == 1 and before != after
    assert os.listdir(kept_before / "cache" / "minidsms") == [after[0].name], "no lock and no part is left"


def test_a_damaged_file_is_compiled_anew(kept_before: Path) -> None:
    (path,) = _kept(kept_before)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + b"\xff\xff\xff" + whole[middle + 3 :])
    assert _run(kept_before) == "42 True"
    assert path.read_bytes() == whole


def test_code_that_needs_what_the_process_does_not_have_is_not_loaded(kept_before: Path) -> None:
    lacking = USE.replace(
        "import kernels_of_test",
        "from minidsms.machine_code import binding, store\n"
        "read = store.read\n"
        "store.read = lambda *a: (c := read(*a)) and store.ObjectCode((*c.symbols, 'nobody_has_this'), c.content)\n"
        "import kernels_of_test",
    )
    assert _run(kept_before, lacking) == "42 True"


def test_where_arrays_lie_otherwise_the_plain_compiler_serves(tmp_path: Path) -> None:
    elsewhere = USE.replace(
        "import kernels_of_test",
        "from minidsms.machine_code import environment\n"
        "environment.is_supported = lambda: False\n"
        "import kernels_of_test",
    )
    assert _run(tmp_path, elsewhere) == "42 True"
    assert _kept(tmp_path) == []


def test_with_a_numba_of_another_inside_the_plain_compiler_serves(tmp_path: Path) -> None:
    another = USE.replace(
        "import kernels_of_test",
        "from minidsms.machine_code import compiling\n"
        "compiling._finished = lambda library, symbol: library.no_such_thing\n"
        "import kernels_of_test",
    )
    assert _run(tmp_path, another) == "42 True"
    assert _kept(tmp_path) == []


def test_a_folder_that_cannot_be_written_keeps_nothing_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert _run(tmp_path) == "42 True"


def test_code_under_the_key_of_another_user_is_compiled_anew(tmp_path: Path) -> None:
    mine, other = {"XDG_CACHE_HOME": str(tmp_path / "mine")}, {"XDG_CACHE_HOME": str(tmp_path / "other")}
    assert _run(tmp_path, **other) == "42 True"
    assert _run(tmp_path, **mine) == "42 True", "not what the other has made"
    assert _run(tmp_path, **mine) == "42 False"
    key = tmp_path / "mine" / "minidsms" / "key"
    assert len(key.read_bytes()) == 32 and key.stat().st_mode & 0o777 == 0o600


def test_code_is_the_same_users_under_another_home(kept_before: Path) -> None:
    assert _run(kept_before, HOME=str(kept_before)) == "42 False"


@pytest.mark.parametrize("damage", ["readable by others", "short", "a link"])
def test_a_key_that_is_no_secret_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    monkeypatch.setattr(store, "_of_account", lambda: tmp_path)
    path, elsewhere = tmp_path / "key", tmp_path / "elsewhere"
    for each in (path, elsewhere):
        each.write_bytes(b"k" * 32)
        each.chmod(0o600)
    assert store._key.__wrapped__() == b"k" * 32
    if damage == "readable by others":
        path.chmod(0o644)
    elif damage == "short":
        path.write_bytes(b"k")
    else:
        path.unlink()
        path.symlink_to(elsewhere)
    key = store._key.__wrapped__()
    assert len(key) == 32 and key != b"k" * 32
    assert store._key.__wrapped__() == key
    assert elsewhere.read_bytes() == b"k" * 32


def test_without_a_folder_for_the_key_nothing_is_taken_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("_of_account", "_of_user", "kept_in"):
        monkeypatch.setattr(store, place, lambda: None)
    assert store._key.__wrapped__() != store._key.__wrapped__()


def test_two_processes_at_once_compile_a_kernel_once(tmp_path: Path) -> None:
    timed = USE.replace(
        "import kernels_of_test",
        "from minidsms.machine_code import compiling\n"
        "made = compiling._object_code\n"
        "def counted(definition):\n    print('compiled')\n    return made(definition)\n"
        "compiling._object_code = counted\n"
        "import kernels_of_test",
    )
    (tmp_path / "kernels_of_test.py").write_text(KERNEL)
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    }
    processes = [
        subprocess.Popen([sys.executable, "-c", timed], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=240)[0] for process in processes]
    assert all("42 True" in answer for answer in answers)
    assert "".join(answers).count("compiled") == 1


STOPPED = """
from kernels_of_test import threefold
from minidsms.machine_code import store
from minidsms.machine_code.definition import definition_of
store.PATIENCE_S = 0.1
with store.alone(definition_of(threefold).name):  # as another process that does not go on
    print(threefold(14))
"""


def test_a_process_that_is_stopped_while_it_compiles_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    assert _run(tmp_path, STOPPED) == "42"
    assert len(_kept(tmp_path)) == 1


IN_A_CYCLE = """
import builtins
from kernels_of_test import threefold
builtins.kept = [threefold]
builtins.kept.append(builtins.kept)
print(type(threefold).__name__, threefold(14))
"""


def test_a_kernel_in_a_cycle_outlives_the_modules_as_python_ends(kept_before: Path) -> None:
    written_over = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "255"}  # what has been freed, by glibc
    assert _run(kept_before, IN_A_CYCLE, **written_over) == "builtin_function_or_method 42"


AHEAD = """
import time
from pathlib import Path
from kernels_of_test import threefold, sixfold
assert threefold(1) == 3
deadline = time.monotonic() + 240
while not list(Path({cache!r}).glob("kernels_of_test.sixfold-*.kernel")) and time.monotonic() < deadline:
    time.sleep(0.02)
from minidsms.machine_code import compiling
compiling.compile_and_keep = None
print(sixfold(7))
"""
SIXFOLD = KERNEL + '\n@kernel("int64(int64)")\ndef sixfold(x):\n    return x * FACTOR * 2\n'


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no second processor to compile on")
def test_what_waits_is_compiled_in_a_second_process(tmp_path: Path) -> None:
    program = AHEAD.format(cache=str(tmp_path / "cache" / "minidsms"))
    assert _run(tmp_path, program, SIXFOLD, MINIDSMS_COMPILE_AHEAD="1") == "42"


ALONE = """
from kernels_of_test import threefold
from minidsms.machine_code import ahead
ahead.subprocess = None
assert threefold(1) == 3
"""


def test_nothing_is_compiled_ahead_where_that_is_not_wanted(tmp_path: Path) -> None:
    _run(tmp_path, ALONE, SIXFOLD, MINIDSMS_COMPILE_AHEAD="0")
    assert [path.name.partition("-")[0] for path in _kept(tmp_path)] == ["kernels_of_test.threefold"]


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc")
def test_the_second_process_ends_with_the_first(tmp_path: Path) -> None:
    program = (
        "from kernels_of_test import threefold\nfrom minidsms.machine_code import ahead\n"
        "ahead._process(['time:sleep'] * 100_000)\nprint('begun')\n"
    )
    mark = f"{tmp_path}"
    assert _run(tmp_path, program, MINIDSMS_COMPILE_AHEAD="1") == "begun"
    deadline = time.monotonic() + 240
    while (left := _processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def _processes_with(mark: str) -> list[str]:
    """Numbers of processes in whose environment a text stands."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environment = (path / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if mark in environment:
            found.append(path.name)
    return found


@pytest.mark.parametrize("owner, is_used", [(1001, True), (0, False), (1002, False)], ids=["mine", "root's", "other's"])
def test_a_folder_of_somebody_else_is_not_used(
    owner: int, is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(tmp_path.stat())
    found[stat.ST_UID] = owner
    monkeypatch.setattr(os, "getuid", lambda: 1001)
    monkeypatch.setattr(Path, "stat", lambda self, **_: os.stat_result(found))
    assert store._usable(tmp_path) == (tmp_path if is_used else None)


@pytest.mark.parametrize(
    "home, kept",
    [("site-packages", "__pycache__/minidsms"), ("dist-packages", "__pycache__/minidsms"),
     ("sources", "minidsms/kernels/__pycache__")],
)  # fmt: skip
def test_an_installed_package_has_nothing_in_it_that_pip_would_leave_behind(
    home: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(store, "__file__", str(tmp_path / home / "minidsms" / "machine_code" / "store.py"))
    store.kept_in.cache_clear()
    try:
        assert store.kept_in() == tmp_path / home / kept
    finally:
        store.kept_in.cache_clear()


def test_what_ended_processes_have_left_unfinished_is_removed_when_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "kept_in", lambda: tmp_path)
    old, young = tmp_path / "old.part", tmp_path / "young.part"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.write("topic.walk", "aa-machine", ObjectCode((), b""))
    assert not old.exists() and young.exists()


def test_a_file_that_cannot_be_finished_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "kept_in", lambda: tmp_path)
    monkeypatch.setattr(os, "replace", is_full)
    store.write("topic.walk", "aa-machine", ObjectCode((), b""))
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "kept_in", lambda: tmp_path)
    code = ObjectCode(("memset", "free"), b"\x00\n\xffcode")
    store.write("topic.walk", "aa-machine", code)
    store.write("topic.walk", "bb-other", code)
    assert store.read("topic.walk", "aa-machine") == code
    assert store.read("topic.walk", "ab-machine") is None
    store.write("topic.walk", "ab-machine", ObjectCode((), b""))
    assert store.read("topic.walk", "aa-machine") is None, "of another state of the sources"
    assert store.read("topic.walk", "bb-other") == code, "of another machine"
    assert store.read("topic.walk", "ab-machine") == ObjectCode((), b"")
    path = tmp_path / "topic.walk-bb-other.kernel"
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:-1], b""):
        path.write_bytes(damaged)
        assert store.read("topic.walk", "bb-other") is None, "it was cut"
    path.write_bytes(whole)
    os.rename(tmp_path / "topic.walk-bb-other.kernel", tmp_path / "topic.run-bb-other.kernel")
    assert store.read("topic.run", "bb-other") is None, "of another kernel"
    store.write("x" * 400, "aa-machine", code)
    assert store.read("x" * 400, "aa-machine") is None, "no file has so long a name"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o702, 0o720])
def test_a_folder_in_which_others_may_write_is_not_used(tmp_path: Path, mode: int) -> None:
    assert store._usable(tmp_path) == tmp_path
    tmp_path.chmod(mode)
    assert store._usable(tmp_path) is None
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "operation",
    [(Path, "read_bytes"), (Path, "unlink"), (Path, "glob"), (store.tempfile, "mkstemp"), (os, "replace"),
     (os, "fdopen"), (os, "open"), (store.fcntl, "flock")],
    ids=lambda operation: operation[1],
)  # fmt: skip
def test_a_disk_that_fails_costs_no_more_than_a_compilation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, operation: tuple[object, str]
) -> None:
    old, new = ObjectCode(("a",), b"old"), ObjectCode(("b",), b"new")
    monkeypatch.setattr(store, "kept_in", lambda: tmp_path)
    store.write("twice", "1-x", old)

    def failing(*arguments: object, **options: object) -> object:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as faults:
        faults.setattr(*operation, failing)
        store.write("twice", "2-x", new)
        assert store.read("twice", "2-x") in (None, new)
        assert store.read("twice", "1-x") in (None, old)
        entered = 0
        with store.alone("twice"):
            entered += 1
        assert entered == 1
    store.write("twice", "2-x", new)
    assert store.read("twice", "2-x") == new


def test_of_forms_those_used_last_are_kept_and_all_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "kept_in", lambda: tmp_path)
    monkeypatch.setattr(store, "MOST_FORMS", 2)
    code = ObjectCode((), b"code")
    for age, name in enumerate(("kernels.one", "kernels.two", "kernels.three", "k.walk.a", "k.walk.b")):
        store.write(name, "digest-here", code)
        os.utime(tmp_path / f"{name}-digest-here.kernel", (age, age))
    assert store.read("k.walk.a", "digest-here") == code
    store.write("k.walk.c", "digest-here", code)
    kept = {path.name.partition("-")[0] for path in tmp_path.glob("*.kernel")}
    assert kept == {"kernels.one", "kernels.two", "kernels.three", "k.walk.a", "k.walk.c"}
