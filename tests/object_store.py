"""An S3 server of this process, on the loopback address: moto's, which takes one request after the other."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.request import Request, urlopen


@functools.cache
def server() -> str:
    """The address of the server, which ends with the process."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = DomainDispatcherApplication(create_backend_app)
    # A request that creates an object looks and then writes: real servers do that in one step.
    one_at_a_time = threading.Lock()

    def served(environ: Any, start_response: Any) -> list[bytes]:
        with one_at_a_time:
            return list(application(environ, start_response))

    running = make_server("127.0.0.1", 0, served, threaded=True, request_handler=_quiet())
    threading.Thread(target=running.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{running.port}"


def _quiet() -> Any:
    from werkzeug.serving import WSGIRequestHandler

    class Quiet(WSGIRequestHandler):
        def log_request(self, *args: Any, **options: Any) -> None:
            """Nobody reads it."""

    return Quiet


@contextmanager
def bucket(name: str) -> Iterator[str]:
    """A new bucket, as `s3://name`; what fsspec and its children need to find it stands in the environment."""
    told = {
        "AWS_ENDPOINT_URL": server(),
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "something",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with patch.dict(os.environ, told):
        urlopen(Request(f"{server()}/{name}", method="PUT")).close()
        yield f"s3://{name}"
