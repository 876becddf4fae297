"""The instance group of a machine for which none was named."""

from __future__ import annotations

from protokube.config.complete import Config
from protokube.errors import InvalidRequest
from protokube.launch.setups.values import NODE


def only_group_of_nodes(config: Config) -> str:
    """InvalidRequest if there are none or several."""
    found = [name for name, tree in config.groups.items() if tree["role"] == NODE]
    if len(found) != 1:
        raise InvalidRequest(
            "name the instance group of the machine",
            saw=f"{len(found)} groups of nodes",
            hint=f"--group is one of {', '.join(config.groups)}",
        )
    return found[0]
