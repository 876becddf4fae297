"""Updates of the operating system by itself: as the spec says, and where it says nothing as the image has it.

The container runtime and network plugins are held at their versions, so no update restarts them unasked.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.values import File, Packages, Task, Unit

APT_FILE = "/etc/apt/apt.conf.d/90protokube-updates"
"""Later than the distribution's own 20auto-upgrades."""
AUTOMATIC = """\
APT::Periodic::Enable "1";
APT::Periodic::Update-Package-Lists "1";
APT::Periodic::Unattended-Upgrade "1";
APT::Periodic::AutocleanInterval "7";
Unattended-Upgrade::Automatic-Reboot "false";
"""
EXTERNAL = 'APT::Periodic::Enable "0";\n'
DNF_PACKAGE, DNF_TIMER = "dnf-automatic", "dnf-automatic-install.timer"


def update_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    if not setup.update_policy:
        return
    brought = [Packages(names=names, held=()) for names in (packages(setup, facts),) if names]
    yield from brought
    if facts.package_manager is PackageManager.APT:
        yield File(path=APT_FILE, content=(AUTOMATIC if brought else EXTERNAL).encode())
    elif brought:
        yield Unit(name=DNF_TIMER, enabled=True, running=True, after=tuple(each.key for each in brought))


def packages(setup: MachineSetup, facts: Facts) -> tuple[str, ...]:
    if setup.update_policy != "automatic":
        return ()
    return ("unattended-upgrades",) if facts.package_manager is PackageManager.APT else (DNF_PACKAGE,)
