"""`up --isolated`: whether hosts of the local cloud reach the outside, as given now or by an earlier `up`.

A cluster works without outside access, so problems here never fail `up`: they become a warning with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protokube.cli.shared.options import show_warnings
from protokube.errors import Problem, ProtokubeError

if TYPE_CHECKING:
    from protokube.config.complete import Config
    from protokube.providers.clients.local import LocalClient

OPTION = "--isolated"


def is_isolated(option: bool | None, before: bool | None) -> bool:
    """Whether to isolate hosts: the option, else the earlier value; a new cluster is not isolated."""
    return bool(before) if option is None else option


def configure_outside(admin: LocalClient, config: Config, option: bool | None) -> dict[str, Any]:
    """Configure outside access; return the resulting state."""
    before = admin.call("about").get("outside")
    if before is None:
        return _too_old(option)
    arguments = outside_arguments(config, isolated=is_isolated(option, before["isolated"]))
    state: dict[str, Any] = admin.call("set_outside", **arguments)
    if not state["isolated"] and not state["reached"]:
        warn(state["why"], "`protokube status` shows when it does")
    return state


def outside_arguments(config: Config, *, isolated: bool) -> dict[str, Any]:
    """The arguments of the daemon's `set_outside`."""
    from protokube.launch.cloud import cloud_config
    from protokube.local.bringup import CACHE
    from protokube.local.outside import slirp
    from protokube.local.outside.config import in_one_line

    cloud = cloud_config(config)
    arguments: dict[str, Any] = {
        "isolated": isolated,
        "pods": list(cloud.pod_ranges),
        "services": list(cloud.service_ranges),
        "domains": [cloud.service_domain] if cloud.service_domain else [],
    }
    if isolated:
        return arguments
    try:
        program = slirp.obtain(CACHE)
    except ProtokubeError as why:
        return {**arguments, "why": in_one_line(why)}
    return {**arguments, "program": program.path, "libraries": list(program.libraries)}


def summary(state: dict[str, Any]) -> str:
    """The text for the progress step of `up`."""
    return "hosts reach the outside" if state["reached"] else "hosts are isolated"


def warn(why: str, hint: str) -> None:
    show_warnings([Problem(path=OPTION, message=f"hosts do not reach the outside: {why}", hint=hint)])


def _too_old(option: bool | None) -> dict[str, Any]:
    why = "the local cloud runs with an older version of protokube"
    if not option:
        warn(why, "end its daemon and run `up` again; hosts keep running meanwhile")
    return {"isolated": None, "reached": False, "why": why}
