"""Servers that are no packages of Python, on the loopback address: Samba's (Debian's package samba) and Hadoop's.

`MINIDSMS_TEST_HADOOP` names a folder of jars with a NameNode and a DataNode: `deps/jars` of the source archive of
PySpark 2.4.8, which has those of Hadoop 2.7, without `jersey-server-2*` and `javax.ws.rs-api-2*`, and those of Debian's
libjersey1-core-java, libjersey1-server-java, libjersey1-servlet-java, libjsr311-api-java and libasm-java.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from minidsms.archive.storage import write_bytes

_PASSWORD = "something"
_SAMBA = """[global]
smb ports = {port}
bind interfaces only = yes
interfaces = lo
private dir = {here}
lock directory = {here}
state directory = {here}
cache directory = {here}
pid directory = {here}
ncalrpc dir = {here}/rpc
passdb backend = tdbsam:{here}/passwords.tdb
disable spoolss = yes
[share]
path = {here}/share
read only = no
"""
_OPENED = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in ("java.lang", "java.nio", "sun.nio.ch")]
_SERVERS = "org.apache.hadoop.hdfs.server"
_HADOOP = {
    "fs.defaultFS": "hdfs://127.0.0.1:{}",
    "dfs.datanode.ipc.address": "127.0.0.1:{}",
    "dfs.namenode.http-address": "127.0.0.1:{}",
    "dfs.datanode.address": "127.0.0.1:{}",
    "dfs.datanode.http.address": "127.0.0.1:{}",
    "dfs.namenode.name.dir": "{here}/names",
    "dfs.datanode.data.dir": "{here}/data",
    "dfs.replication": "1",
    "dfs.permissions.enabled": "false",
}


@functools.cache
def smb() -> str:
    """The address of a share of a server that runs until the process ends."""
    here, (port,) = _folder(), _free_ports(1)
    for folder in ("rpc", "share"):
        (here / folder).mkdir()
    (here / "smb.conf").write_text(_SAMBA.format(port=port, here=here))
    settings = ["-s", str(here / "smb.conf")]
    user, twice = getpass.getuser(), f"{_PASSWORD}\n{_PASSWORD}\n"
    subprocess.run(["pdbedit", *settings, "-a", "-t", user], input=twice, text=True, check=True, capture_output=True)
    _run(["smbd", "-F", "--no-process-group", *settings, "-l", str(here)], port)
    return f"smb://{user}:{_PASSWORD}@127.0.0.1:{port}/share"


@functools.cache
def hdfs() -> str:
    """The address of a NameNode that runs until the process ends."""
    here, ports = _folder(), _free_ports(5)
    site = {key: value.format(port, here=here) for (key, value), port in zip(_HADOOP.items(), [*ports, *[0] * 9])}
    told = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in site.items())
    for name in ("core-site.xml", "hdfs-site.xml"):
        (here / name).write_text(f"<configuration>{told}</configuration>")
    for page in ("hdfs", "datanode", "static"):
        (here / "webapps" / page).mkdir(parents=True)
    java = ["java", *_OPENED, "-Xmx512m", "-cp", f"{here}{os.pathsep}{os.environ['MINIDSMS_TEST_HADOOP']}/*"]
    name_node = [*java, f"{_SERVERS}.namenode.NameNode"]
    subprocess.run([*name_node, "-format", "-nonInteractive"], check=True, capture_output=True)
    _run(name_node, ports[0])
    _run([*java, f"{_SERVERS}.datanode.DataNode"], ports[1])
    place = f"hdfs://127.0.0.1:{ports[0]}"
    while True:  # until the DataNode has told the NameNode of itself
        with contextlib.suppress(OSError):
            write_bytes(f"{place}/first", b"1")
            return place
        time.sleep(0.1)


def _folder() -> Path:
    here = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, here, ignore_errors=True)
    return here


def _free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(n)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]


def _run(command: list[str], port: int) -> None:
    """Let a server run until the process ends. Returns when it answers."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(running.terminate)
    while running.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise OSError(f"{command[0]} has ended with {running.returncode}")
