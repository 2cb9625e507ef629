"""Addresses of sources and sinks: `tcp://host:port`, on loopback unless more is asked for.

Invariant: nothing is opened on, or sent to, another machine without the option allow_remote.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

from minidsms.cql.errors import Error, shown
from minidsms.sources.options import OptionError

_TCP = re.compile(r"(tcp|tcp-listen)://(?:\[([0-9a-fA-F:.]+)\]|([^/:\[\]@?#]+)):([0-9]{1,5})/?", re.IGNORECASE)


@dataclass(frozen=True)
class TcpAddress:
    """A host and port; listens: clients come to us."""

    host: str
    port: int
    listens: bool

    @property
    def family(self) -> socket.AddressFamily:
        """IPv6 where the host is written so."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET


def tcp_address(path: str, allow_remote: bool) -> TcpAddress:
    """Read an address. Error where it is none, or leads away from this machine without leave."""
    match = _TCP.fullmatch(path)
    if match is None or not int(match[4]) <= 65535:
        raise Error(f"{path!r} is no address\nhelp: write tcp://127.0.0.1:9000 or tcp-listen://127.0.0.1:9000")
    listens = match[1].lower() == "tcp-listen"
    host = match[2] or match[3]
    if int(match[4]) == 0 and not listens:
        raise Error(f"{path!r}: there is no port 0 to connect to\nhelp: only tcp-listen:// may leave the port open")
    check_loopback(host, path, allow_remote)
    return TcpAddress("127.0.0.1" if host.lower() == "localhost" else host, int(match[4]), listens)


def no_address(path: str) -> Error:
    """What says so, without any part of the path that may be one of a password."""
    return Error(f"{shown(path)} is no address\nhelp: in a password, % / ? # @ are written %25 %2F %3F %23 %40")


def check_loopback(host: str, path: str, allow_remote: bool) -> None:
    """Refuse a host that is not this machine's loopback, unless it was asked for."""
    if allow_remote or is_loopback(host):
        return
    hint = "lines are neither encrypted nor authenticated; if that is right, add WITH (allow_remote = true)"
    raise OptionError("allow_remote", f"{path!r} is not on this machine's loopback", hint)


def is_loopback(host: str) -> bool:
    """The host is this machine, by its own address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
