"""Start the kubelet, each round, once disks and names are ready.

Too early, it would start pods that must fail and then hold them back; too late, and a machine without a free volume
would never be a node. So it waits for what this master holds, but not for ever.
"""

from __future__ import annotations

from protokube.agent import etcd
from protokube.agent.world import Turn
from protokube.members.start import Join, Start

STEP = "kubelet"
UNIT = "kubelet.service"
PATIENCE = 60.0


def sync(turn: Turn) -> None:
    missing = _not_ready(turn)
    if missing and turn.waited(f"{STEP} ") < PATIENCE:
        turn.waiting(STEP, "", f"it is started when {missing}, or after {PATIENCE:.0f} s")
        return
    if turn.world.units.ensure_started(UNIT):
        turn.report.done(STEP, "started" + (f" before {missing}" if missing else ""))


def _not_ready(turn: Turn) -> str:
    """What of this master's own work the kubelet should not run ahead of."""
    for key in (each.key for each in turn.wanted.etcd):
        mine = [home for home in turn.homes if home.etcd.key == key]
        if not mine:
            return f"a volume of {key} is mounted here"
        for home in mine:
            serving = isinstance(turn.decisions.get(home.volume), Start | Join)
            if serving and not etcd.is_linked(turn, home):
                return f"the manifest of {home.name} is linked"
    return ""
