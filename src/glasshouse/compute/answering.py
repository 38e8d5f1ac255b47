"""Whether a Ray cluster answers at an address, asked in seconds: Ray itself tries for a quarter of an hour."""

from __future__ import annotations

import os
import socket
import time

from glasshouse.errors import InputError

__all__ = ["check_answers"]

_SECONDS = 10.0
_PORTS = {True: 10001, False: 6379}  # Ray's own defaults: of ray://, and of the cluster itself
# Every server of Ray speaks gRPC, which is HTTP/2: greeted like this, it must send its settings first.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4


def check_answers(address: str, *, seconds: float = _SECONDS) -> None:
    """Refuse an address at which nothing answers, or something that is not Ray.

    Args:
        address: ``host``, ``host:port`` or ``ray://host:port``.
        seconds: how long to wait.

    Example:
        >>> check_answers("127.0.0.1:1")
        Traceback (most recent call last):
        glasshouse.errors.InputError: cluster: no Ray cluster answers at '127.0.0.1:1' (Connection refused). Start ...
    """
    host, port = _parsed(address)
    ends = time.monotonic() + seconds
    try:
        with socket.create_connection((host, port), timeout=seconds) as line:
            if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
                return  # it answers only to those that have its keys
            line.sendall(_GREETING)
            header = b""
            while len(header) < 9:
                line.settimeout(max(ends - time.monotonic(), 0.01))
                more = line.recv(9 - len(header))
                if not more:
                    raise ConnectionError("something else than Ray closed the connection")
                header += more
    except (OSError, UnicodeError) as error:  # UnicodeError: a host that cannot be a name
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise _refusal(address, reason) from error
    if header[3] != _SETTINGS:
        raise _refusal(address, "something else than Ray answers")


def _parsed(address: str) -> tuple[str, int]:
    client = address.startswith("ray://")
    host, colon, port = address.removeprefix("ray://").split("?")[0].rpartition(":")
    if not colon:
        host, port = port, str(_PORTS[client])
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"cluster: {address!r} is not an address. Use auto, host:port or ray://host:port.")
    return host.strip("[]"), int(port)


def _refusal(address: str, reason: str) -> InputError:
    return InputError(
        f"cluster: no Ray cluster answers at {address!r} ({reason}). Start it, give another address, or leave "
        f"--cluster out."
    )
