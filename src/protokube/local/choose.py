"""The cluster that a command works on: the one it names, or the only one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from protokube.errors import InvalidRequest, NotFound
from protokube.local.base.paths import MARK, PARENT, Paths
from protokube.nearest import no_such


def clusters() -> list[str]:
    """The local clusters on this machine."""
    parent = Path(os.environ.get("PROTOKUBE_STATE") or PARENT)
    if not parent.is_dir():
        return []
    return sorted(each.name for each in parent.iterdir() if _is_cluster(Paths.at(each)))


def _is_cluster(paths: Paths) -> bool:
    """A folder that we may not read counts as a cluster of root; the command then fails with a permission error."""
    try:
        return stat.S_ISREG((paths.root / MARK).stat().st_mode)
    except PermissionError:
        return paths.root.is_dir()
    except OSError:
        return False


def _what_now(name: str, found: list[str]) -> str:
    """What to do if no name is similar."""
    if "/" in name or Path(name).is_file():
        return "--cluster takes the name of a cluster, as `protokube list` shows it, and no file"
    return "protokube list" if found else "protokube up"


def one_cluster(name: str | None) -> str:
    """The named cluster, or the only one. NotFound, or InvalidRequest if there are several."""
    found = clusters()
    if name is not None:
        if name not in found:
            raise no_such("local cluster", name, found, hint=_what_now(name, found))
        return name
    if not found:
        raise NotFound("there is no local cluster on this machine", hint="protokube up", code="no-cluster")
    if len(found) > 1:
        raise InvalidRequest(
            f"there are several local clusters: {', '.join(found)}",
            hint=f"--cluster {found[0]}",
            code="several-clusters",
        )
    return found[0]
