"""`up --expose`: ports that lead to Services which may not exist yet.

Form and ports are checked before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from protokube.errors import InvalidRequest, ProtokubeError

if TYPE_CHECKING:
    from protokube.cli.shared.progress import Progress
    from protokube.local.base.paths import Paths
    from protokube.providers.clients.local import LocalClient

FORM = re.compile(r"(?:(?:(\[[0-9a-fA-F:.]+\]|[0-9.]+|localhost):)?(\d+):)?(.+)")
WANT = "[[ADDRESS:]PORT:][NAMESPACE/]SERVICE[:PORT], such as web:80, 8080:web:80 or 0.0.0.0:8080:shop/web:http"
Decorated = Callable[..., Any]


class ToExpose(NamedTuple):
    """One port as `up` was told; without a number of its own the daemon chooses one."""

    address: str
    local_port: int | None
    service: str
    prefer: int


def expose_option(function: Decorated) -> Decorated:
    text = (
        "Port of this machine that leads to a Service, as by `protokube expose`; the Service may come later. "
        "Can be given several times."
    )
    metavar = "[[ADDRESS:]PORT:]SERVICE[:PORT]"
    return click.option("--expose", "exposed", metavar=metavar, multiple=True, callback=_read, help=text)(function)


def _read(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[ToExpose]:
    return [read_exposed(each) for each in texts]


def read_exposed(text: str) -> ToExpose:
    """InvalidRequest for anything else than [[ADDRESS:]PORT:][NAMESPACE/]SERVICE[:PORT]. Pure."""
    from protokube.kube.services import is_port, read_name
    from protokube.local.cloud.exposed import read_address
    from protokube.local.cloud.ports import LOOPBACK

    found = FORM.fullmatch(text)
    if found is None or (found[2] is not None and not is_port(found[2])):
        raise InvalidRequest(f"--expose {text!r} cannot be read", want=WANT)
    try:
        name = read_name(found[3])
        address = read_address((found[1] or LOOPBACK).strip("[]"))
    except InvalidRequest as why:
        raise InvalidRequest(f"--expose {text!r}: {why.message}", want=WANT) from why
    port = int(found[2]) if found[2] else None
    return ToExpose(address, port, str(name), int(name.port) if name.port.isdigit() else 0)


def check_exposed(wanted: Sequence[ToExpose], paths: Paths, *, kubernetes: bool) -> None:
    """Refused if a port is in use by anything but the same exposure of this cluster."""
    from protokube.local.cloud.exposed import listen

    if wanted and not kubernetes:
        raise InvalidRequest("--expose needs Kubernetes: without it there are no Services", hint="leave it out")
    places = [(each.address, each.local_port) for each in wanted if each.local_port]
    if len(set(places)) < len(places):
        raise InvalidRequest("--expose names a port twice", hint="give each Service a port of its own")
    for each in wanted:
        if each.local_port is None:
            continue
        try:
            listen(each.address, each.local_port).close()
        except ProtokubeError:
            if each[:3] not in _exposed_now(paths):
                raise


def _exposed_now(paths: Paths) -> list[tuple[str, int, str]]:
    from protokube.providers.clients.local import LocalClient
    from protokube.view.values import ExposedView

    try:
        rows = LocalClient(paths.admin_socket, patience=2.0).call("about").get("exposed", ())
    except ProtokubeError:
        return []
    views = [ExposedView(**each) for each in rows]
    return [(each.address, each.local_port, each.target) for each in views]


def expose_all(progress: Progress, admin: LocalClient, wanted: Sequence[ToExpose]) -> None:
    from protokube.view.values import ExposedView

    for each in wanted:
        with progress.step(f"{each.service} exposed") as step:
            made = admin.call("expose", **each._asdict())
            step.text = f"{made['address']} port {made['local_port']} leads to {each.service}"
        if warning := ExposedView(**made, listening=True).warning:
            click.echo(f"warning: {warning}", err=True)
