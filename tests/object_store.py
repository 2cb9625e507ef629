"""An S3 server of this process, on the loopback address: moto's, which takes one request after the other."""

from __future__ import annotations

import functools
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.request import Request, urlopen


@functools.cache
def _socket() -> socket.socket:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken


def environment() -> Mapping[str, str]:
    """What clients, and processes that are started, need to find the server."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{_socket().getsockname()[1]}",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "something",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@functools.cache
def _serve() -> None:
    """Let it run until the process ends."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, *args: Any, **options: Any) -> None:
            """Nobody reads it."""

    application = DomainDispatcherApplication(create_backend_app)
    # A request that creates an object looks and then writes: real servers do that in one step.
    one_at_a_time = threading.Lock()

    def served(environ: Any, start_response: Any) -> list[bytes]:
        with one_at_a_time:
            return list(application(environ, start_response))

    _socket().listen(64)
    running = make_server("127.0.0.1", 0, served, threaded=True, request_handler=Quiet, fd=_socket().fileno())
    threading.Thread(target=running.serve_forever, daemon=True).start()


@contextmanager
def bucket(name: str) -> Iterator[str]:
    """A new bucket, as `s3://name`; while it is used, the environment tells where it is."""
    _serve()
    told = environment()
    with patch.dict(os.environ, told):
        urlopen(Request(f"{told['AWS_ENDPOINT_URL']}/{name}", method="PUT")).close()
        yield f"s3://{name}"
