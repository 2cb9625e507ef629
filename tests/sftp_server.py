"""An SFTP server of this process, on the loopback address: asyncssh's, which serves this machine's files."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import asyncssh
import fsspec.config

PASSWORD = "something"


class _Server(asyncssh.SSHServer):
    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return password == PASSWORD


@functools.cache
def _serve() -> tuple[int, str]:
    """Let it run until the process ends; its port, and its line in a file of known hosts."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    ports: list[int] = []
    ready = threading.Event()

    async def run() -> None:
        server = await asyncssh.create_server(_Server, "127.0.0.1", 0, server_host_keys=[key], sftp_factory=True)
        ports.append(server.get_port())
        ready.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    ready.wait()
    return ports[0], f"[127.0.0.1]:{ports[0]} {key.export_public_key().decode().strip()}\n"


def environment() -> Mapping[str, str]:
    """What processes that are started need to trust the server."""
    return {"FSSPEC_SFTP_HOST_KEY_POLICY": "auto_add"}


def known_host() -> str:
    """The server's line in a file of known hosts."""
    return _serve()[1]


def address(folder: Path) -> str:
    """A folder of this machine as the server calls it."""
    return f"sftp://someone:{PASSWORD}@127.0.0.1:{_serve()[0]}{folder}"


@contextmanager
def trusted(folder: Path) -> Iterator[str]:
    """The address of a folder; while it is used, any host is trusted, by this process and those it starts."""
    policy = {"sftp": {"host_key_policy": "auto_add"}}
    with patch.dict(fsspec.config.conf, policy), patch.dict(os.environ, environment()):
        yield address(folder)
