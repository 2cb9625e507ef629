"""A page in Chromium by its own protocol, with nothing switched on but what is asked for.

A library that drives browsers listens to the network, and a renderer keeps for it all that came; it leaves a world of
scripts behind whenever it attaches. Here what a renderer holds is what the page holds.
https://chromedevtools.github.io/devtools-protocol
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from typing import Any

_OPTIONS = ("--headless=new", "--no-sandbox", "--no-first-run", "--remote-debugging-pipe", "--window-size=1280,900")


def chromium() -> str | None:
    """Where Chromium is."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Tab:
    """One tab of a headless browser of its own, which ends with it.  pid: of the browser."""

    def __init__(self) -> None:
        read, self._commands = os.pipe()
        self._answers, written = os.pipe()
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        program = [chromium() or "chromium", *_OPTIONS, f"--user-data-dir={self._folder.name}", "about:blank"]
        self._process = subprocess.Popen(  # it reads from 3 and writes to 4
            ["sh", "-c", f'exec "$0" "$@" 3<&{read} 4>&{written}', *program], pass_fds=(read, written),
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read)
        os.close(written)
        self.pid = self._process.pid
        self._came = b""
        self._n = 0
        self._session: dict[str, str] = {}
        target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}

    def call(self, method: str, **parameters: Any) -> Any:
        """Carry out a method of the protocol: its result. Error where it has none."""
        self._n += 1
        command = {"id": self._n, "method": method, "params": parameters, **self._session}
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (told := self._next()).get("id") != self._n:
            continue
        return told["result"]

    def _next(self) -> Any:
        while b"\0" not in self._came:
            came = os.read(self._answers, 1 << 20)
            if not came:
                raise EOFError("the browser has ended")
            self._came += came
        told, _, self._came = self._came.partition(b"\0")
        return json.loads(told)

    def run(self, script: str, *given: Any) -> Any:
        """Call a function of JavaScript in the page, and wait for what it promises."""
        expression = f"({script})(...{json.dumps(given)})"
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise ValueError(done["exceptionDetails"]["exception"]["description"])
        return done["result"].get("value")

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        self._folder.cleanup()
