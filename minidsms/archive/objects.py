"""Archives at addresses: everything that fsspec has a file system for can be read, object stores can be written, too.

An object appears as a whole. What makes commits safe without locks is a request that creates an object and fails where
there is one (`If-None-Match: *` with S3); file systems that fsspec gives no such request are only read, but for those
whose servers rename (`remote_folders.py`). Credentials and endpoints are those of fsspec and of its file system:
variables of the environment, files of configuration.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Any

from pyarrow import PythonFile
from pyarrow.fs import FSSpecHandler, PyFileSystem

from minidsms.archive.storage import Entry, Held, InDoubtError
from minidsms.cql.errors import Error
from minidsms.cql.masking import masked
from minidsms.sources.remote_files import check_no_user

_CREATING = ("s3", "gs", "gcs", "abfs", "abfss", "az", "memory")
"""Schemes whose file systems create an object only where there is none, in one step."""
_FOLDERS = ("sftp", "webhdfs", "hdfs", "smb")
"""Schemes of servers that rename, each with a module of its name; see `remote_folders.py`."""
_OPTIONS = {"s3": {"use_listings_cache": False, "max_concurrency": 1}}
"""With more at a time, s3fs asks for the size of whatever it reads before it reads it."""
_EXTRAS = {
    "s3": "minidsms[s3]", "sftp": "minidsms[sftp]", "webhdfs": "minidsms[webhdfs]", "hdfs": "minidsms[hdfs]",
    "smb": "minidsms[smb]",
    "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs",
}  # fmt: skip
_TRACE = re.compile(r"(\n|\\n)(\t|\\t)at .*", re.DOTALL)
"""Java's stack trace, which servers of Hadoop add to what they say."""
_TRIES = 4
_PAUSE_S = 0.5


def objects_of(place: str) -> Objects:
    """The storage of an address. Error where fsspec has none."""
    scheme = place.partition(":")[0]
    wanted = _EXTRAS.get(scheme, "fsspec")
    try:
        import fsspec

        named = place
        if _has_folders(scheme):  # of which the host says it all: what follows may hold any character
            named = "/".join(place.split("/")[:3])
            told = fsspec.utils.infer_storage_options(named)
            told = {key: value for key, value in told.items() if key not in ("protocol", "path")}
        else:
            if scheme == "s3":
                check_no_user(place)
            told = fsspec.get_filesystem_class(scheme)._get_kwargs_from_urls(place)
        with told_as_os_error(named):
            return _opened(os.getpid(), scheme, tuple(sorted(told.items())))
    except OSError as error:
        raise Error(str(error)) from None
    except ImportError as error:
        raise Error(f"{place!r}: {error}\nhelp: pip install {wanted!r}") from None
    except ValueError as error:
        raise Error(f"{place!r}: {str(error)[:200]}\nhelp: such as s3://bucket/folder, or a path") from None


def _has_folders(scheme: str) -> bool:
    """Archives there lie in folders of servers that rename. HDFS is only read where pyarrow alone reaches it."""
    return scheme in _FOLDERS and (scheme != "hdfs" or find_spec("hdfs_native") is not None)


@functools.lru_cache(maxsize=64)
def _opened(process: int, scheme: str, told: tuple[tuple[str, Any], ...]) -> Objects:
    """One file system for all threads, made anew behind a fork. told: what its address says of it."""
    import fsspec

    if _has_folders(scheme):
        opened: Objects = import_module(f"minidsms.archive.{scheme}").folders(scheme, dict(told))
        return opened
    try:
        system = fsspec.filesystem(scheme, **_OPTIONS.get(scheme, {}), **dict(told))
    except OSError as error:
        raise (ImportError(str(error).partition("\n")[0]) if scheme == "hdfs" else error) from error
    return Objects(scheme, system if system.async_impl or scheme == "memory" else OneAtATime(system))


class Objects:
    """What fsspec's file system of a scheme holds; see `Storage`."""

    locks = False

    def __init__(self, scheme: str, system: Any) -> None:
        self._scheme = scheme
        self._system = system
        self._arrow = PyFileSystem(_Handler(system))
        self._mutex = threading.Lock()
        self._tried: set[str] = set()

    def read(self, path: str) -> bytes:
        with told_as_os_error(path):
            content: bytes = self._system.cat_file(self._inside(path))
            return content

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        """See `Storage`: at once, where the file system can."""
        if not paths:
            return []
        with told_as_os_error(paths[0]):
            inside = [self._inside(path) for path in paths]
            contents: list[Any] = self._system.cat_ranges(inside, None, None, on_error="return")
        for path, content in zip(paths, contents):
            if isinstance(content, BaseException):
                with told_as_os_error(path):
                    raise content
        return contents

    def exists(self, path: str) -> bool:
        try:
            with told_as_os_error(path):
                self._fresh().info(self._inside(path))
        except FileNotFoundError:
            return False
        return True

    def entries(self, folder: str) -> list[Entry]:
        inside = self._inside(folder).rstrip("/")
        with told_as_os_error(folder):
            found = self._fresh().ls(inside, detail=True)
        there = [(str(each["name"]).rstrip("/"), each["type"] == "directory") for each in found]
        return [Entry(name.rpartition("/")[2], is_folder) for name, is_folder in there if name != inside]

    def sizes(self, paths: Sequence[str]) -> list[int]:
        if not paths:
            return []
        with told_as_os_error(paths[0]):
            return [int(size or 0) for size in self._fresh().sizes([self._inside(path) for path in paths])]

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        self._check_writable(path)
        content = io.BytesIO()
        fill(content)
        with told_as_os_error(path):
            self._system.pipe_file(self._inside(path), content.getvalue())

    def create(self, path: str, data: bytes) -> None:
        """See `Storage`. No two callers give the same data: by them a call knows its own object where an answer was
        lost. InDoubtError where none can be had.
        """
        self._create(path, data)
        part = self._tried_as_one(self._inside(path))
        if part in self._tried:
            return
        try:
            self._create(path, secrets.token_bytes(16))
        except FileNotFoundError:  # another writer has removed what was to be renamed: the next call tries again
            return
        except FileExistsError:
            self._tried.add(part)
            return
        raise Error(
            f"{path!r}: the server replaces {self._replaced}\n"
            f"help: archives need a server that {self._needed}; mount the folder, or write elsewhere"
        )

    _replaced = "objects that it is told to create"
    _needed = "knows If-None-Match"

    def _tried_as_one(self, inside: str) -> str:
        """The part of the storage that a server treats alike: the bucket."""
        return inside.strip("/").partition("/")[0]

    def _put_new(self, path: str, data: bytes) -> None:
        """Let there be a file, in one step; OSError where one is there."""
        with self._mutex if self._scheme == "memory" else contextlib.nullcontext():
            self._system.pipe_file(self._inside(path), data, mode="create")

    def _create(self, path: str, data: bytes) -> None:
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_S * attempt)
            try:
                with told_as_os_error(path):
                    self._put_new(path, data)
                return
            except PermissionError:
                raise
            except OSError as error:
                reason = error
            # The reason says less than what is there now: what was to be renamed is missing, too, where a library has
            # asked again for a lost answer.
            missing = isinstance(reason, FileNotFoundError)
            try:
                there = self.read(path)
            except FileNotFoundError:
                if missing:
                    raise reason from None
                continue
            except OSError:
                continue
            if there == data:
                return
            raise reason if missing else FileExistsError(path)
        raise InDoubtError(f"{path!r}: {reason}")

    def remove(self, path: str) -> None:
        with told_as_os_error(path):
            self._system.rm_file(self._inside(path))

    def make_folder(self, folder: str) -> None:
        """Folders are there with their objects."""

    def remove_folder(self, folder: str) -> None:
        """They go with their objects."""

    def remove_tree(self, folder: str) -> None:
        with contextlib.suppress(OSError), told_as_os_error(folder):
            for path in self._fresh().find(self._inside(folder)):
                self._system.rm_file(path)

    def move_tree(self, folder: str, to: str) -> None:
        """See `Storage`: file by file."""
        for entry in self.entries(folder):
            with told_as_os_error(folder):
                self._system.cp_file(self._inside(f"{folder}/{entry.name}"), self._inside(f"{to}/{entry.name}"))
                self._system.rm_file(self._inside(f"{folder}/{entry.name}"))

    def arrow(self, path: str) -> tuple[str, Any]:
        return self._inside(path), self._arrow

    def lock(self, folder: str) -> Held:
        """See `Storage`: a lease."""
        from minidsms.archive.lease import Lease

        self._check_writable(folder)
        return Lease(self, folder)

    def _check_writable(self, path: str) -> None:
        if self._scheme not in _CREATING:
            others = "write to s3:, gs:, abfs:, sftp:, smb:, hdfs: or webhdfs:, or mount the folder"
            raise Error(
                f"{path!r}: archives at {self._scheme}: addresses can only be read, for writers are not kept apart\n"
                f"help: {f'pip install {_EXTRAS[self._scheme]!r}' if self._scheme in _FOLDERS else others}"
            )

    def _fresh(self) -> Any:
        """The file system, which may not answer from what it has listed before."""
        self._system.invalidate_cache()
        return self._system

    def _inside(self, path: str) -> str:
        inside: str = self._system._strip_protocol(path)
        if not path.rstrip("/").endswith(inside.rstrip("/").partition("/")[2]):
            # adlfs drops what follows a question mark: of two such places it would make one.
            raise Error(f"{path!r}: the file system of {self._scheme}: reads it as {inside!r}\nhelp: write plain names")
        return inside


class OneAtATime:
    """A file system that takes one request at a time, whichever thread makes it, with the files that it has opened."""

    def __init__(self, asked: Any, lock: threading.RLock | None = None) -> None:
        self._asked = asked
        self._one = lock or threading.RLock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._asked, name)
        if not callable(found):
            return found

        def ask(*arguments: Any, **options: Any) -> Any:
            with self._one:
                if reach := getattr(self._asked, "reach", None):
                    reach()
                answer = found(*arguments, **options)
            return OneAtATime(answer, self._one) if name == "open" else answer

        return ask

    def __enter__(self) -> OneAtATime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(FSSpecHandler):  # type: ignore[misc]
    """For pyarrow, which knows itself which parts of a file it reads."""

    def open_input_file(self, path: str) -> Any:
        with told_as_os_error(path):
            return PythonFile(self.fs.open(path, mode="rb", cache_type="none"), mode="r")


@contextlib.contextmanager
def told_as_os_error(path: str) -> Iterator[None]:
    """What libraries raise as an OSError, without the stack traces of servers, and without passwords."""
    path = masked(path)
    try:
        yield
    except (Error, ImportError):
        raise
    except Exception as error:
        text = masked(_TRACE.sub("", str(error)))
        if not isinstance(error, OSError):
            raise OSError(f"{path}: {type(error).__name__}: {text[:200]}") from error
        if error.errno is None and text.startswith("[Errno None] "):  # paramiko's, which names no address
            raise OSError(f"{path}: {text.removeprefix('[Errno None] ')}") from error
        if text != str(error):
            raise type(error)(f"{path}: {text}") from error
        if type(error).__module__ != "builtins" and error.errno is not None:
            raise OSError(error.errno, f"{path}: {text}") from error  # Python's own, such as FileNotFoundError
        raise
