"""Names of units, escaped as systemd-escape does it. Pure."""

from __future__ import annotations

import re

from protokube.errors import Refused

KINDS = ("service", "socket", "mount", "timer", "target", "path", "slice", "automount", "swap")
NAME = re.compile(rf"[A-Za-z0-9:_.\\@-]+\.({'|'.join(KINDS)})")
PLAIN = re.compile(r"[A-Za-z0-9:_.]")


def checked(name: str) -> str:
    """Refused if it is no name of a unit: it becomes part of a path."""
    if not NAME.fullmatch(name) or len(name) > 255:
        raise Refused(f"{name!r} is no name of a unit", want="a name such as kubelet.service")
    return name


def escape_path(path: str) -> str:
    """`/var/lib/etcd` as `var-lib-etcd`, `/` as `-`."""
    parts = [part for part in path.split("/") if part]
    return "-".join(escape(part, first=not index) for index, part in enumerate(parts)) or "-"


def escape(text: str, *, first: bool) -> str:
    out = []
    for index, sign in enumerate(text):
        plain = PLAIN.match(sign) and not (sign == "." and first and not index)
        out.append(sign if plain else "".join(f"\\x{byte:02x}" for byte in sign.encode()))
    return "".join(out)


def mount_unit(path: str) -> str:
    return f"{escape_path(path)}.mount"
