"""`protokube version`: what this command is, and the programs on this machine that `up` would take."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable

import click

from protokube.cli.shared.options import output_option

NONE = "none"


@click.command()
@output_option(default="text", choices=("text", "json"))
def version(output: str) -> None:
    """Show versions: protokube, Python, etcd and Kubernetes.

    For etcd and Kubernetes: what `protokube up` takes for a new cluster without a spec, if it is on this machine;
    nothing is downloaded. `protokube --version` shows only the first line.

    \b
      protokube version
      protokube version -o json
    """
    from protokube import __version__
    from protokube.local.base import ourselves

    release = attempt(kubernetes)
    found = {
        "protokube": {"version": __version__, "path": str(ourselves.HOME / "protokube"), "installed": installed()},
        "python": {"version": platform.python_version(), "path": sys.executable},
        "etcd": attempt(lambda: etcd_for(release)),
        "kubernetes": release,
    }
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo("\n".join(lines(found)))


def lines(found: dict[str, dict[str, str]]) -> list[str]:
    """One line for each program: its version and where it is, or why there is none. Pure."""
    from protokube.cli.render.table import table

    names = {"protokube": "protokube", "python": "Python", "etcd": "etcd", "kubernetes": "Kubernetes"}
    rows = [
        (names[key], each.get("version", NONE), each.get("path") or each.get("problem", ""))
        for key, each in found.items()
    ]
    return table(("PROGRAM", "VERSION", "PATH"), rows)


def installed() -> str:
    """In which way protokube came here: as a folder of its own (single file, Debian package) or as a package."""
    from protokube.local.base import ourselves

    kept = ourselves.stays(ourselves.HOME)
    return "package" if kept is None else "folder" if kept else "for this run"


def attempt(look: Callable[[], dict[str, str]]) -> dict[str, str]:
    """A program, or the problem with it: a wrong or unreadable folder must not hide the rest."""
    from protokube.errors import ProtokubeError

    try:
        return look()
    except ProtokubeError as why:
        return {"problem": why.message}
    except OSError as why:
        return {"problem": f"{why.filename or 'it'} cannot be read: {why.strerror}"}


def kubernetes() -> dict[str, str]:
    from protokube.binaries.kubernetes import KUBERNETES

    found = KUBERNETES.find(None)
    if found is None:
        return {"problem": "`protokube get kubernetes` gets it"}
    return {"version": found.version, "path": str(found.folder)}


def etcd_for(release: dict[str, str]) -> dict[str, str]:
    """The etcd that goes with this Kubernetes, if it is here."""
    from protokube.binaries.product import CACHE
    from protokube.local.etcd_choice import Needs, at_hand

    found, passed = at_hand(Needs(kubernetes=release.get("version", "")), CACHE)
    if found is None:
        return {"problem": "; ".join(["`protokube up` gets it", *passed])}
    return {"version": found.version, "path": str(found.etcd)}
