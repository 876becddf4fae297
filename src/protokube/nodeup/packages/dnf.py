"""Install packages of Fedora's kind: which commands are run, and what rpm's answer means. Pure.

dnf starts no services and, without --allowerasing, removes nothing. Versions are held by its versionlock plugin.
"""

from __future__ import annotations

from collections.abc import Iterable

from protokube.nodeup.packages.names import Asked
from protokube.nodeup.packages.status import Package

QUERY = ("rpm", "--query", "--queryformat", r"%{NAME}\t%{EVR}\n")
PLUGIN = "python3-dnf-plugin-versionlock"
INSTALL = ("dnf", "--assumeyes", "--quiet", "--setopt=install_weak_deps=False", "install")
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def query(wanted: Iterable[Asked]) -> tuple[str, ...]:
    """Ends with an error if one is missing; its lines count all the same."""
    return (*QUERY, *(each.name for each in wanted))


def read(queried: str, locked: str) -> dict[str, Package]:
    """The packages, from rpm's lines and those of `dnf versionlock list`."""
    found: dict[str, Package] = {}
    locks = tuple(line.strip() for line in locked.splitlines())
    for line in queried.splitlines():
        name, tab, version = line.partition("\t")
        if tab:
            held = any(is_lock(each, name) for each in locks)
            found[name] = Package(name=name, version=version, state="installed", held=held)
    return found


def is_lock(line: str, name: str) -> bool:
    """Whether a line such as `containerd-0:1.6.20-3.fc38.*` is about a package: its version begins with an epoch."""
    return line.startswith(f"{name}-") and line[len(name) + 1 :].partition(":")[0].isdigit()


def list_locks() -> tuple[str, ...]:
    return ("dnf", "--quiet", "versionlock", "list")


def install(wanted: Iterable[Asked]) -> tuple[str, ...]:
    return (*INSTALL, PLUGIN, *(f"{each.name}-{each.version}" if each.version else each.name for each in wanted))


def unlock(names: Iterable[str]) -> tuple[str, ...]:
    return ("dnf", "--quiet", "versionlock", "delete", *names)


def lock(names: Iterable[str]) -> tuple[str, ...]:
    return ("dnf", "--quiet", "versionlock", "add", *names)
