"""Files on other machines: `https://host/path`, by the standard library, and `s3://bucket/path`, by Arrow.

Invariants: what is read comes from the address that was given: a server that names another one is not followed; a file
that changes while it is read is an error; nothing is read unencrypted from another machine unless asked for.
"""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import glob
import http.client
import io
import urllib.error
import urllib.request
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from minidsms.cql.errors import Error, shown
from minidsms.sources.addresses import check_loopback, no_address
from minidsms.sources.files import Files, is_hidden
from minidsms.sources.options import OptionError, Options

SCHEMES = ("https", "http", "s3")
_ANSWER_S = 60.0
"""How long a server may say nothing."""
_TRIES = 3
"""How often a connection that breaks off is made again where it broke off."""
_BUFFER = 1 << 18


def remote_files(path: str, scheme: str, options: Options) -> Files:
    """What reads files of an address. Error where an option is none, or what is read would not be encrypted."""
    if scheme == "s3":
        check_no_user(path)
        return S3Files(options.rest("s3."), options.flag("allow_remote"))
    allowed = options.flag("allow_remote")
    host = _host(path)
    if scheme == "http":
        check_loopback(host, path, allowed)
    return HttpFiles({name: str(value) for name, value in options.rest("http.").items()})


def _host(address: str) -> str:
    """The host that an address names, or "". Error where it is no address."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # a ValueError where it is no number
    except ValueError as error:
        if "@" in address:
            raise no_address(address) from None
        raise Error(f"{shown(address)} is no address: {error}") from None
    return parts.hostname or ""


def check_no_user(address: str) -> None:
    """Error where an address of S3 holds credentials: nobody reads them there, and libraries would show them."""
    if "@" in address.split("/")[2]:
        raise Error(
            f"{shown(address)}: an address of S3 holds no credentials\n"
            "help: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or ~/.aws/credentials"
        )


def _without_user(url: str) -> tuple[str, dict[str, str]]:
    """An address that HTTP takes, and the header that says whose it is: `user:password@` stands before the host.

    >>> _without_user("https://ann:p%40ss@host/a.csv")
    ('https://host/a.csv', {'Authorization': 'Basic YW5uOnBAc3M='})
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    coded = base64.b64encode(unquote(user).encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), {"Authorization": f"Basic {coded}"}


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Nothing is read from elsewhere than was asked for."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """See the base."""
        raise Error(f"{shown(req.full_url)} is elsewhere now\nhelp: if it is to be read there, write {shown(newurl)}")


class HttpFiles:
    """Files of web servers. headers: sent with each request."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers
        self._opener = urllib.request.build_opener(_Redirects())

    def open(self, path: str) -> tuple[IO[bytes], int]:
        try:
            file = _HttpFile(self._opener, path, self._headers)
        except http.client.HTTPException as error:  # an address or an answer that HTTP does not know
            raise OSError(f"{type(error).__name__} {shown(str(error))}") from None
        return io.BufferedReader(file, _BUFFER), file.size

    def named(self, path: str) -> list[str] | None:
        """A web server does not list what it has."""
        return None


class _HttpFile(io.RawIOBase):
    """A file of a web server, read in one request as long as nobody asks for another part of it.

    Where a connection breaks off, the rest is asked for, of the same version of the file.
    """

    def __init__(self, opener: urllib.request.OpenerDirector, url: str, headers: dict[str, str]) -> None:
        self._opener = opener
        self._url, user = _without_user(url)
        self._headers = {**user, **headers}
        self._at = 0
        self._version: str | None = None
        self._response: Any = None
        self.size = 0
        self._ask()

    def _ask(self) -> None:
        """Ask for everything from here on; the first answer tells the size and the version."""
        request = urllib.request.Request(self._url, headers={"User-Agent": "minidsms", **self._headers})
        if self._at:
            request.add_header("Range", f"bytes={self._at}-")
        try:
            response = self._opener.open(request, timeout=_ANSWER_S)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # behind the end
                self._response = io.BytesIO()
                return
            if error.code in (404, 410):
                raise FileNotFoundError(self._url) from None
            raise OSError(f"the server says {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            raise OSError(str(error.reason)) from None
        version = response.headers.get("ETag") or response.headers.get("Last-Modified")
        if not self._at and self._version is None:
            self.size, self._version = int(response.headers.get("Content-Length") or 0), version or ""
        elif (version or "") != self._version:
            response.close()
            raise OSError("the file has changed while it was read")
        self._response = response
        left = self._at if response.status == 200 else 0  # a server without ranges begins at the beginning
        while left > 0 and (data := response.read(min(left, _BUFFER))):
            left -= len(data)

    def readinto(self, buffer: Any) -> int:
        """See the base. OSError where the server breaks off more than _TRIES times."""
        for tries_left in range(_TRIES - 1, -1, -1):
            try:
                if self._response is None:
                    self._ask()
                found = self._response.readinto(buffer)
                if found or not len(buffer) or not self.size or self._at >= self.size:
                    self._at += found
                    return int(found)
                reason = f"the server broke off at byte {self._at:,} of {self.size:,}"
            except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
                reason = f"the server broke off at byte {self._at:,}: {error}"
            self._hang_up()
            if not tries_left:
                raise OSError(reason)
        raise AssertionError

    def readable(self) -> bool:
        """See the base."""
        return True

    def seekable(self) -> bool:
        """See the base: by asking for the file from there on."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See the base."""
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if at != self._at:
            self._hang_up()
            self._at = at
        return at

    def tell(self) -> int:
        """See the base."""
        return self._at

    def close(self) -> None:
        """See the base."""
        self._hang_up()
        super().close()

    def _hang_up(self) -> None:
        if self._response is not None:
            with contextlib.suppress(OSError):
                self._response.close()
            self._response = None


class S3Files:
    """Files of S3, or of what speaks like it. given: options `s3.*`, which Arrow's file system takes."""

    def __init__(self, given: dict[str, Any], allow_remote: bool) -> None:
        from pyarrow import fs

        endpoint = str(given.get("endpoint_override", ""))
        host = _host(endpoint if "://" in endpoint else f"//{endpoint}")
        if given.get("scheme") == "http" or endpoint.lower().startswith("http:"):
            check_loopback(host, endpoint, allow_remote)
        try:
            self._files = fs.S3FileSystem(**given)
        except TypeError as error:
            there = "region, endpoint_override, scheme, anonymous, access_key, secret_key, session_token, .."
            name = next(iter(given), "")
            raise OptionError(f"s3.{name}", f"S3: {str(error)[:200]}", f"there are: {there}") from None
        except (ValueError, OSError) as error:
            raise Error(f"S3: {str(error)[:200]}") from None

    def open(self, path: str) -> tuple[IO[bytes], int]:
        file = self._files.open_input_file(_key(path))
        return io.BufferedReader(file, _BUFFER), file.size()

    def named(self, path: str) -> list[str] | None:
        from pyarrow import fs

        key = _key(path)
        if not glob.has_magic(key) and not key.endswith("/"):
            return None
        # What stands before the first wildcard is looked through.
        parts = key.rstrip("/").split("/")
        plain = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        folder, pattern = "/".join(parts[:plain]), parts[plain:]
        try:
            found = self._files.get_file_info(fs.FileSelector(folder, recursive=True))
        except (OSError, ValueError) as error:
            raise Error(f"cannot read {shown(path)}: {str(error)[:200]}") from None
        names = [info.path for info in found if info.type == fs.FileType.File]
        rests = [(name, name.removeprefix(folder).lstrip("/")) for name in names]
        return sorted(f"s3://{name}" for name, rest in rests if _fits(rest, pattern))


def _key(path: str) -> str:
    return path.partition("://")[2]


def _fits(name: str, pattern: list[str]) -> bool:
    """A name within a folder is one that a pattern means: `*` within a part of the path, `**` over parts; without a
    pattern, all that is not hidden.
    """
    if not pattern:
        return not is_hidden(name)
    parts = name.split("/")
    if pattern[0] == "**":
        return any(_fits("/".join(parts[i:]), pattern[1:]) for i in range(len(parts))) if pattern[1:] else True
    if not fnmatch.fnmatchcase(parts[0], pattern[0]):
        return False
    return _fits("/".join(parts[1:]), pattern[1:]) if pattern[1:] and parts[1:] else len(parts) == len(pattern) == 1
