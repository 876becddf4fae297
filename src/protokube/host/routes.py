"""Read this machine's routes; add and remove ours, which carry their own protocol number."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from protokube.errors import Refused, TryLater
from protokube.host import Route

MARK = "201"
"""The routing protocol number of our routes; the kernel stores it without using it."""
FAMILIES = ("-4", "-6")
SECONDS = 10.0


class HostRoutes:
    """Implements Routes with the program `ip`."""

    def read(self) -> Sequence[Route]:
        found: list[Route] = []
        for family in FAMILIES:
            rows: list[Mapping[str, Any]] = json.loads(_ip("-json", "-N", family, "route", "show") or "[]")
            found += [_route(row, family) for row in rows if "dst" in row]
        return found

    def change(self, remove: Sequence[Route], add: Sequence[Route]) -> None:
        commands = [f"route del {_words(each)}" for each in remove] + [f"route add {_words(each)}" for each in add]
        if commands:
            _ip("-force", "-batch", "-", text="".join(f"{command}\n" for command in commands))


def _route(row: Mapping[str, Any], family: str) -> Route:
    destination = str(row["dst"])
    if destination != "default" and "/" not in destination:
        destination += "/32" if family == "-4" else "/128"
    return Route(destination=destination, via=str(row.get("gateway", "")), ours=str(row.get("protocol")) == MARK)


def _words(route: Route) -> str:
    return f"{route.destination} via {route.via} proto {MARK}"


def _ip(*arguments: str, text: str = "") -> str:
    program = shutil.which("ip", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if program is None:
        raise Refused("the pod network needs the program `ip`", hint="apt-get install iproute2")
    try:
        ran = subprocess.run(  # noqa: S603
            [program, *arguments], input=text, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired as late:
        raise TryLater(f"`ip` took longer than {SECONDS:g} seconds") from late
    if ran.returncode:
        raise TryLater("not every route could be read or changed", saw=ran.stderr.strip()[:300])
    return ran.stdout
