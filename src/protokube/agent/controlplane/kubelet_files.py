"""The kubelet's configuration file and flags: the agent writes them, so that a change reaches a running machine.

A kubelet reads them at its start, so each write while it runs is followed by a restart; see `kubelet`.
"""

from __future__ import annotations

from collections.abc import Mapping

from protokube.agent.round import Round
from protokube.host.files import write_atomic
from protokube.launch.files import kubelet_files
from protokube.launch.machine import KubeletConfig, MasterConfig

PUBLIC = 0o644
PRECISION = 0.1
"""Seconds by which the time of a start may be measured wrong: it is the difference of two clocks."""


def write(round_: Round, step: str) -> list[str]:
    """Write those that differ and return their paths; a failure is reported and does not keep the kubelet down."""
    written = []
    for path, text in _wanted(round_).items():
        place = round_.edges.inside(path)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if write_atomic(place, text.encode(), PUBLIC):
                written.append(path)
                round_.report.done(step, f"{path} written")
        except OSError as why:
            round_.waiting(step, path, f"cannot be written: {why.strerror or why}")
    return written


def write_times(round_: Round) -> dict[str, float]:
    """By path, when each was written; without those that cannot be read."""
    found = {}
    for path in _wanted(round_):
        try:
            found[path] = round_.edges.inside(path).stat().st_mtime
        except OSError:
            continue
    return found


def newer(times: Mapping[str, float], started: float, now: float) -> str:
    """The first file that was written after a start; "" if none was, or if that is uncertain.

    A time in the future says nothing: the clock was set back.
    """
    return next((path for path, at in sorted(times.items()) if started + PRECISION < at <= now), "")


def of_group(wanted: MasterConfig, group: str) -> KubeletConfig | None:
    """The kubelet of a group's masters, or of any masters if the group has none of its own; None without kubelets."""
    return wanted.kubelets.get(group) or next(iter(wanted.kubelets.values()), None)


def _wanted(round_: Round) -> dict[str, str]:
    kubelet = of_group(round_.wanted, round_.edges.me.group)
    return kubelet_files(kubelet) if kubelet else {}
