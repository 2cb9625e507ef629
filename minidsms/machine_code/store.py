"""Where object code is kept: a file per kernel, beside the kernels or, where that cannot be written, of the user.

A file is named by its kernel and by the digest of everything it was made of, and begins with the digest of this name
and of what follows, under a key that only this user has: the symbols it needs and the object file. A file cut short, of
other sources, under the name of another, or that somebody else has made, is one that is not there. Files are replaced
whole. There are as many kernels as the sources have; of the forms of templates, which come with every new plan, the
MOST_FORMS used last are kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

try:
    import fcntl
    import pwd
except ImportError:  # Windows: two processes may compile the same kernel at once; the last to finish is kept.
    fcntl = pwd = None  # type: ignore[assignment]

_CHECK_BYTES = 16
_KEY = "key"
_KEY_BYTES = 32
_SUFFIX = ".kernel"
_UNFINISHED = ".part"
MOST_FORMS = 256
"""Some 40 KB each."""
_OF_FORMS = f"*.*.*-*{_SUFFIX}"
"""Module, function and constants."""
PATIENCE_S = 60.0
"""For another process that compiles the same: a kernel takes it some seconds."""
_LOOK_S = 0.02
"""Between two looks meanwhile."""
_OLD_S = 3600
"""A file that has been unfinished for so long is one of a process that was ended."""


@dataclass(frozen=True)
class ObjectCode:
    """An object file, and the names of what it takes from the process it is loaded into."""

    symbols: tuple[str, ...]
    content: bytes


def read(name: str, digest: str) -> ObjectCode | None:
    """The object code of a kernel, if exactly this is kept.  digest: `environment.mark`."""
    folder = kept_in()
    if folder is None:
        return None
    path = folder / f"{name}-{digest}{_SUFFIX}"
    try:
        content = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it is used
    check, rest = content[:_CHECK_BYTES], content[_CHECK_BYTES:]
    if check != _check(path.name, rest):
        return None
    symbols, _, code = rest.partition(b"\n")
    return ObjectCode(tuple(symbols.decode().split()), code)


def write(name: str, digest: str, code: ObjectCode) -> None:
    """Keep object code, in place of what was kept of the same kernel; nowhere if nothing can be written."""
    folder = kept_in()
    if folder is None:
        return
    content = " ".join(code.symbols).encode() + b"\n" + code.content
    place = folder / f"{name}-{digest}{_SUFFIX}"
    with contextlib.suppress(OSError):
        _remove_unfinished(folder)
        handle, written = tempfile.mkstemp(dir=folder, suffix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_check(place.name, content) + content)
            os.replace(written, place)
        except OSError:
            Path(written).unlink(missing_ok=True)
            raise
        for other in folder.glob(f"{name}-*-{digest.rpartition('-')[2]}{_SUFFIX}"):
            if other != place:
                other.unlink(missing_ok=True)
        _remove_unused_forms(folder)


def _remove_unused_forms(folder: Path) -> None:
    """Remove the forms that have not been used for longest, beyond MOST_FORMS."""
    forms = list(folder.glob(_OF_FORMS))
    if len(forms) > MOST_FORMS:
        used = {path: path.stat().st_mtime_ns for path in forms}
        for path in sorted(forms, key=used.__getitem__)[: len(forms) - MOST_FORMS]:
            path.unlink(missing_ok=True)


def _remove_unfinished(folder: Path) -> None:
    """Remove what processes have left that were ended while they wrote."""
    for path in folder.glob(f"*{_UNFINISHED}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _OLD_S:
                path.unlink()


@contextlib.contextmanager
def alone(name: str, before_waiting: Callable[[], object] = bool) -> Iterator[None]:
    """Hold other processes off a kernel while it is compiled; who has waited looks again whether it is kept.

    before_waiting: called where another process is at it. One that does not come to an end, as where it is stopped, is
    waited for as long as PATIENCE_S.
    """
    folder = kept_in()
    if folder is None or fcntl is None:
        yield
        return
    path = folder / f"{name}.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # without locks, two processes may compile the same
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                before_waiting()
                _wait_for(lock)
        yield
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _wait_for(lock: int) -> None:
    """Lock a file once nobody else holds it. BlockingIOError where that takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_LOOK_S)


@cache
def kept_in() -> Path | None:
    """The folder: in NUMBA_CACHE_DIR where that is set, else beside the kernels, else in the user's own cache.

    Of an installed package it lies outside: pip leaves behind what it has not installed, and a folder of the package's
    name without its modules hides the package that is installed next as a link to its sources.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return _usable(Path(chosen) / "minidsms")
    package = Path(__file__).parent.parent
    is_installed = package.parent.name in ("site-packages", "dist-packages")
    beside = package.parent / "__pycache__" / "minidsms" if is_installed else package / "kernels" / "__pycache__"
    return _usable(beside) or _of_user()


def _of_user() -> Path | None:
    """The user's own folder; None where there is no such user's home: kernels are then compiled in every process."""
    try:
        cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return _usable(Path(cache_home) / "minidsms")


def _of_account() -> Path | None:
    """The folder in the home that the system names for the account, whatever HOME says."""
    if pwd is None or os.environ.get("XDG_CACHE_HOME"):
        return None
    try:
        return _usable(Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "minidsms")
    except KeyError:
        return None


def _usable(folder: Path) -> Path | None:
    """The folder, made if need be, where it is this user's and nobody else may write."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return None
    others = stat.S_IWGRP | stat.S_IWOTH
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & others):
        return None
    return folder if os.access(folder, os.W_OK) else None


def _check(name: str, content: bytes) -> bytes:
    return hashlib.blake2b(name.encode() + b"\n" + content, digest_size=_CHECK_BYTES, key=_key()).digest()


@cache
def _key() -> bytes:
    """The secret of this user, in the user's own folder, else in that of the kernels; made with the first kernel.

    So code that came with a copy of the folder, or out of somebody's archive of it, is not loaded. A process with
    another HOME is still this user's: it neither compiles again nor replaces what the user's other processes need.
    """
    folder = _of_account() or _of_user() or kept_in()
    if folder is not None:
        with contextlib.suppress(OSError):
            path = folder / _KEY
            if not _is_secret(path):
                _make_secret(path)
            key = path.read_bytes()
            if _is_secret(path) and len(key) == _KEY_BYTES:
                return key
    return secrets.token_bytes(_KEY_BYTES)


def _is_secret(path: Path) -> bool:
    """Only this user may read and write it."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_size != _KEY_BYTES:
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)


def _make_secret(path: Path) -> None:
    """Write a key, in place of what is none; of several processes that do so at once all take the same."""
    handle, written = tempfile.mkstemp(dir=path.parent, suffix=_UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        if os.path.lexists(path):
            os.replace(written, path)
            return
        try:
            os.link(written, path)
        except FileExistsError:
            return
        except OSError:  # a file system without links: the last of them is kept
            os.replace(written, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(written)
