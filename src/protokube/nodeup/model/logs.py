"""Rotation of the log files that components write where the spec tells them to, looked at each hour.

Logs of containers are rotated by the kubelet, those of units by the journal, the audit log by the API server.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.values import File, Packages, Task, Unit

PATH, TIMER = "/etc/logrotate.d/protokube", "logrotate.timer"
HOURLY = "[Timer]\nOnCalendar=\nOnCalendar=hourly\nRandomizedDelaySec=5min\n"


def log_tasks(setup: MachineSetup, _facts: Facts, packages: Packages) -> Iterator[Task]:
    """`packages`: the task that brings logrotate."""
    rotation = setup.log_rotation
    if not rotation.files:
        return
    yield File(path=PATH, content=text(rotation.files, rotation.keep, rotation.max_size).encode())
    yield Unit(
        name=TIMER,
        drop_ins={"10-protokube.conf": HOURLY},
        enabled=True,
        running=True,
        after=(packages.key,),
    )


def text(files: tuple[str, ...], keep: int, max_size: str) -> str:
    names = "\n".join(files)
    # copytruncate: the writers keep their files open
    return f"""{names}
{{
    rotate {keep}
    daily
    maxsize {max_size}
    copytruncate
    missingok
    notifempty
    compress
    delaycompress
}}
"""
