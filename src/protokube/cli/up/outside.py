"""`up --isolated`: whether hosts of the local cloud reach the outside, as it is said now or was said before.

A cluster without a way outside is a whole cluster, so nothing here ends `up`: where there can be none, it says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protokube.cli.shared.options import show_warnings
from protokube.errors import Problem, ProtokubeError

if TYPE_CHECKING:
    from protokube.config.complete import Config
    from protokube.providers.clients.local import LocalClient

OPTION = "--isolated"


def carried_on(said: bool | None, before: bool | None) -> bool:
    """Whether hosts are to be isolated; what nobody says now is as it was, and in the beginning there is a way out."""
    return bool(before) if said is None else said


def open_or_close(admin: LocalClient, config: Config, said: bool | None) -> dict[str, Any]:
    """Have it as it is wanted; what came of it."""
    before = admin.call("about").get("outside")
    if before is None:
        return _too_old(said)
    state: dict[str, Any] = admin.call("set_outside", **wish(config, isolated=carried_on(said, before["isolated"])))
    if not state["isolated"] and not state["reached"]:
        warn(state["why"], "`protokube status` shows when it does")
    return state


def wish(config: Config, *, isolated: bool) -> dict[str, Any]:
    """What the daemon is told."""
    from protokube.local.bringup import CACHE
    from protokube.local.outside import slirp
    from protokube.local.outside.wish import in_one_line

    tree = config.cluster
    told: dict[str, Any] = {
        "isolated": isolated,
        "pods": ranges(tree.get("podCIDR")),
        "services": ranges(tree.get("serviceClusterIPRange")),
        "domains": [tree["clusterDNSDomain"]] if tree.get("clusterDNSDomain") else [],
    }
    if isolated:
        return told
    try:
        program = slirp.obtain(CACHE)
    except ProtokubeError as why:
        return {**told, "why": in_one_line(why)}
    return {**told, "program": program.path, "libraries": list(program.libraries)}


def ranges(told: str | None) -> list[str]:
    """One range, or one of each family."""
    return [each.strip() for each in (told or "").split(",") if each.strip()]


def summary(state: dict[str, Any]) -> str:
    """For the step of `up`."""
    return "hosts reach the outside" if state["reached"] else "hosts are isolated"


def warn(why: str, hint: str) -> None:
    show_warnings([Problem(path=OPTION, message=f"hosts do not reach the outside: {why}", hint=hint)])


def _too_old(said: bool | None) -> dict[str, Any]:
    why = "the local cloud runs with an older version of protokube"
    if not said:
        warn(why, "end its daemon and say `up` again; hosts run on meanwhile")
    return {"isolated": None, "reached": False, "why": why}
