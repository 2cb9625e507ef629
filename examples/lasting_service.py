"""Which machines became hotter than 80 degrees on average over ten seconds, each told once, though the service that
tells it is killed again and again?

The service keeps everything in a folder. Whoever sends readings asks how many it has and goes on there; whoever takes
alarms says how many he has and is given the others. Requests and replies are lines of JSON.

    python examples/lasting_service.py [--port PORT] [--folder FOLDER]
    python examples/lasting_service.py --check [KILLS]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import socket
import socketserver
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from checking import agree

import minidsms

CQL = """
CREATE STREAM IF NOT EXISTS Reading (machine TEXT, degrees INTEGER, at TIMESTAMP) TIMESTAMP BY at;

CREATE QUERY IF NOT EXISTS alarms AS
    SELECT ISTREAM(machine) FROM
        (SELECT machine, AVG(degrees) AS mean FROM Reading [RANGE 10 SECONDS] GROUP BY machine) AS Mean
    WHERE mean > 80
"""


class Service(socketserver.ThreadingTCPServer):
    """Answers requests over a connection with a folder."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, port: int, folder: Path) -> None:
        self.db = minidsms.connect(folder)
        self.db.execute(CQL)
        super().__init__(("127.0.0.1", port), Requests)

    def answer(self, request: dict[str, Any]) -> Any:
        """What a request is replied: how many readings there are, or the alarms from a number on."""
        if "alarms_from" in request:
            alarms = self.db.queries["alarms"].fetch(ack=request["alarms_from"])
            return [[alarm.row[0], alarm.ts] for alarm in alarms]
        if "readings" in request:
            self.db.push("Reading", [tuple(reading) for reading in request["readings"]])
        if "until" in request:
            self.db.advance(request["until"])
        return self.db.position("Reading")


class Requests(socketserver.StreamRequestHandler):
    """One client."""

    server: Service

    def handle(self) -> None:
        """Answer line by line."""
        for line in self.rfile:
            self.wfile.write(json.dumps(self.server.answer(json.loads(line))).encode() + b"\n")


class Client:
    """Sends readings and takes alarms, through as many deaths of the service as come."""

    def __init__(self, port: int, folder: str) -> None:
        self.alarms: list[list[Any]] = []
        self._command = [sys.executable, __file__, "--port", str(port), "--folder", folder]
        self._port = port
        self._service: subprocess.Popen[bytes] | None = None

    def send(self, readings: list[list[Any]], kills: set[int]) -> None:
        """Send all readings and take all alarms. kills: the numbers of the requests during which the service dies."""
        made = 0
        while True:
            try:
                with self._connected() as link, link.makefile("rw") as lines:
                    position = self._ask(lines, {})
                    while position < len(readings):
                        made += 1
                        request = {"readings": readings[position : position + 50]}
                        lines.write(json.dumps(request) + "\n")
                        lines.flush()
                        if made in kills:
                            time.sleep(random.random() / 1000)
                            self.kill()
                        position = json.loads(lines.readline())
                        self.alarms += self._ask(lines, {"alarms_from": len(self.alarms)})
                    self._ask(lines, {"until": readings[-1][2]})
                    self.alarms += self._ask(lines, {"alarms_from": len(self.alarms)})
                    return
            except (OSError, ValueError):  # it died, and did not reply
                continue

    def _ask(self, lines: Any, request: dict[str, Any]) -> Any:
        lines.write(json.dumps(request) + "\n")
        lines.flush()
        return json.loads(lines.readline())

    def _connected(self) -> socket.socket:
        """A connection to the service, which is started where it does not run."""
        if self._service is None or self._service.poll() is not None:
            self._service = subprocess.Popen(self._command)
        while self._service.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self._port))
            except ConnectionRefusedError:
                time.sleep(0.02)
        raise RuntimeError("the service does not start")

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._service is not None:
            self._service.kill()
            self._service.wait()


def expected(readings: list[list[Any]]) -> list[list[Any]]:
    """The alarms, by a plain recomputation: there is a reading of each machine every second."""
    last: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=10))
    hot: set[str] = set()
    alarms = []
    for machine, degrees, at in readings:
        last[machine].append(degrees)
        is_hot = sum(last[machine]) > 80 * len(last[machine])
        if is_hot and machine not in hot:
            alarms.append([machine, at])
        (hot.add if is_hot else hot.discard)(machine)
    return alarms


def check(kills: int) -> int:
    """Let the service die so many times, and count."""
    rng = random.Random(0)
    readings = [
        [machine, rng.randrange(60, 100), s * 1000] for s in range(1500) for machine in ("mill", "press", "saw")
    ]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        client = Client(port, folder)
        try:
            client.send(readings, set(rng.sample(range(1, len(readings) // 50), kills)))
        finally:
            client.kill()
    print(f"{len(client.alarms)} alarms through {kills} deaths")
    return agree("every alarm, told once,", sorted(client.alarms), sorted(expected(readings)))


def main(arguments: list[str]) -> int:
    """Serve, or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=9000, help="where requests are taken")
    parser.add_argument("--folder", type=Path, default=Path("service"), help="where everything is kept")
    parser.add_argument("--check", type=int, nargs="?", const=20, metavar="KILLS", help="die so often, and count")
    options = parser.parse_args(arguments)
    if options.check is not None:
        return check(options.check)
    with Service(options.port, options.folder) as service, contextlib.suppress(KeyboardInterrupt):
        print(f"requests at port {options.port}, everything kept in {options.folder}; Ctrl-C ends it", flush=True)
        service.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
