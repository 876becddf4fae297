"""A user without rights, as a program: becomes user 65534 without groups, tries everything, reports what it could do.

Started as root with an order on stdin, so that it can read its own modules; nothing is tried before the change of user.
The types of records are imported for that reason, too: dnspython would do it at their first use.
Answers as JSON: for each path what succeeded, and which files that it found by itself hold one of the secrets.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import dns.rcode
import dns.rdtypes.ANY.SOA
import dns.rdtypes.ANY.TSIG
import dns.rdtypes.IN.A
import dns.tsig
import dns.update

NOBODY = 65534
LARGEST = 64 << 20
SECONDS = 60.0


def become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def attempts(path: str, kind: int) -> Iterator[str]:
    """What this user can do with a file, folder or socket of this kind."""
    if stat.S_ISDIR(kind):
        with suppress(OSError):
            os.listdir(path)  # noqa: PTH208
            yield "list"
        with suppress(OSError):
            made = f"{path}/.stranger"
            os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            yield "create"
            Path(made).unlink()
    elif stat.S_ISSOCK(kind):
        for way in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with suppress(OSError), socket.socket(socket.AF_UNIX, way) as link:
                link.settimeout(SECONDS)
                link.connect(path)
                yield "connect"
    else:
        for flag, name in ((os.O_RDONLY, "read"), (os.O_WRONLY, "write")):
            with suppress(OSError):
                os.close(os.open(path, flag | os.O_NONBLOCK | os.O_NOCTTY))
                yield name


def found(tops: Iterable[str], newer: float) -> Iterator[str]:
    """Every regular file below these folders that this user finds and that changed since then."""
    for top in tops:
        for folder, _, names in os.walk(top):
            for name in names:
                path = f"{folder}/{name}"
                with suppress(OSError):
                    about = Path(path).lstat()
                    if stat.S_ISREG(about.st_mode) and about.st_mtime >= newer and about.st_size <= LARGEST:
                        yield path


def holding(paths: Iterable[str], secrets: list[str]) -> Iterator[str]:
    """Those that can be read, and have a secret in them."""
    for path in paths:
        with suppress(OSError):
            content = Path(path).read_bytes()
            if any(each.encode() in content for each in secrets):
                yield path


def command_lines() -> Iterator[str]:
    return (f"{process}/cmdline" for process in Path("/proc").glob("[0-9]*"))


def updates(host: str, port: int, zone: str, key: str, secret: str) -> dict[str, str]:
    """Ask for a name to be written, in each way somebody without the key could; answer with what the server says."""
    wrong = {
        "unsigned": None,
        "another secret": dns.tsig.Key(key, secret),
        "another key": dns.tsig.Key("stranger.", secret),
    }
    replies = {}
    for how, keyring in wrong.items():
        for way, send in (("udp", dns.query.udp), ("tcp", dns.query.tcp)):
            update = dns.update.UpdateMessage(zone, keyring=keyring)
            update.replace("stranger", 5, "A", "192.0.2.1")
            try:
                replies[f"{how} by {way}"] = dns.rcode.to_text(send(update, host, port=port, timeout=SECONDS).rcode())
            except (dns.tsig.PeerError, dns.message.UnknownTSIGKey) as refused:
                replies[f"{how} by {way}"] = type(refused).__name__
    return replies


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    secrets = order["secrets"]
    tried = {path: list(attempts(path, kind)) for path, kind in order["paths"]}
    everywhere = (*found(order["tops"], order["newer"]), *command_lines())
    return {
        "user": os.getuid(),
        "groups": os.getgroups(),
        "could": {path: done for path, done in tried.items() if done},
        "secrets": sorted(set(holding(everywhere, secrets))),
        "updates": updates(**order["dns"]),
    }


if __name__ == "__main__":
    order = json.load(sys.stdin)
    become(NOBODY)
    json.dump(carry_out(order), sys.stdout)
