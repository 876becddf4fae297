"""Units and notifications with real systemd, booted as a machine of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from e2e.systemd_machine import SystemdMachine, wait_for
from protokube.errors import Refused, TryLater
from protokube.host.systemd import SystemdUnits

NOTIFYING = """
import os, sys, time
sys.path.insert(0, "/opt/protokube")
from protokube.host.notify import notify, watchdog_seconds
assert watchdog_seconds() == 4.0, watchdog_seconds()
assert notify(STATUS="taking the disks")
while not os.path.exists("/root/go"):
    time.sleep(0.05)
assert notify(READY="1", STATUS="two members served")
for _ in range(int(sys.argv[1])):
    time.sleep(0.2)
    notify(WATCHDOG="1")
time.sleep(600)
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[SystemdMachine]:
    assert os.geteuid() == 0, "this test boots a machine: run it as root"
    booted = SystemdMachine(f"protokube-{os.getpid()}")
    yield booted
    booted.close()


@pytest.fixture
def units(machine: SystemdMachine) -> SystemdUnits:
    return SystemdUnits(machine.bus)


def test_a_unit_that_was_just_installed_is_started_and_then_left_alone(
    machine: SystemdMachine, units: SystemdUnits
) -> None:
    machine.write_unit("kubelet.service", "ExecStart=/bin/sleep infinity")

    assert units.ensure_started("kubelet.service")
    assert wait_for(lambda: machine.state("kubelet.service") == "active", "kubelet")
    assert not units.ensure_started("kubelet.service")


def test_a_unit_that_was_killed_is_started_again(machine: SystemdMachine, units: SystemdUnits) -> None:
    machine.write_unit("killed.service", "ExecStart=/bin/sleep infinity")
    units.ensure_started("killed.service")
    wait_for(lambda: machine.state("killed.service") == "active", "its start")
    machine.run("systemctl", "kill", "--signal=KILL", "killed.service")
    assert wait_for(lambda: machine.state("killed.service") == "failed", "its end")

    assert units.ensure_started("killed.service")
    assert wait_for(lambda: machine.state("killed.service") == "active", "its return")


def test_a_unit_that_takes_its_time_is_not_waited_for(machine: SystemdMachine, units: SystemdUnits) -> None:
    machine.write_unit("slow.service", "Type=notify", "ExecStart=/bin/sleep infinity")
    started = time.monotonic()

    assert units.ensure_started("slow.service")
    assert time.monotonic() - started < 20, "systemd gives it 90 seconds"
    assert wait_for(lambda: machine.state("slow.service") == "activating", "its start")
    assert not units.ensure_started("slow.service")


def test_units_that_cannot_be_started_are_for_a_person(machine: SystemdMachine, units: SystemdUnits) -> None:
    machine.write_unit("broken.service", "Type=nonsense")
    (machine.inside / "etc/systemd/system/masked.service").symlink_to("/dev/null")

    for unit, why in (("absent.service", "there is no unit"), ("masked.service", "is masked")):
        with pytest.raises(Refused, match=why):
            units.ensure_started(unit)
    with pytest.raises(Refused, match="not valid"):
        units.ensure_started("broken.service")
    with pytest.raises(Refused, match="will not start"):
        units.ensure_started("no unit at all")


def test_a_unit_that_runs_is_started_anew_and_says_for_how_long_it_has_been_running(
    machine: SystemdMachine, units: SystemdUnits
) -> None:
    def process() -> str:
        return machine.run("systemctl", "show", "--property=MainPID", "--value", "renewed.service")

    machine.write_unit("renewed.service", "ExecStart=/bin/sleep infinity")
    units.restart("renewed.service")
    assert units.running_for("renewed.service") is None, "what does not run is left alone"
    units.ensure_started("renewed.service")
    wait_for(lambda: (units.running_for("renewed.service") or 0) > 1, "a second of it")
    before = process()

    units.restart("renewed.service")

    wait_for(lambda: machine.state("renewed.service") == "active" and process() not in (before, "0"), "its next life")
    first = units.running_for("renewed.service")
    assert first is not None
    assert wait_for(lambda: (units.running_for("renewed.service") or 0) > first, "time passing")


def test_systemd_knows_from_us_when_we_are_ready_what_we_do_and_that_we_live(
    machine: SystemdMachine, units: SystemdUnits
) -> None:
    (machine.inside / "root/notifying.py").write_text(NOTIFYING)
    for name, beats in (("lively", 1000), ("silent", 3)):
        service = ("Type=notify", "WatchdogSec=4", f"ExecStart=/usr/bin/python3 /root/notifying.py {beats}")
        machine.write_unit(f"{name}.service", *service)
        assert units.ensure_started(f"{name}.service")

    def status(unit: str) -> str:
        return machine.run("systemctl", "show", "--property=StatusText", "--value", unit)

    assert wait_for(lambda: status("lively.service") == "taking the disks", "its first word")
    assert machine.state("lively.service") == "activating"
    (machine.inside / "root/go").touch()
    assert wait_for(lambda: machine.state("lively.service") == "active", "being ready")
    assert status("lively.service") == "two members served"
    assert wait_for(lambda: machine.state("silent.service") == "failed", "the watchdog")
    assert machine.run("systemctl", "show", "--property=Result", "--value", "silent.service") == "watchdog"
    assert machine.state("lively.service") == "active"


def test_a_machine_whose_bus_is_stopped_is_asked_again_later(machine: SystemdMachine, units: SystemdUnits) -> None:
    machine.write_unit("later.service", "ExecStart=/bin/sleep infinity")
    machine.run("systemctl", "stop", "dbus.socket", "dbus.service")
    with pytest.raises(TryLater, match="cannot ask systemd"):
        units.ensure_started("later.service")

    machine.run("systemctl", "start", "dbus.socket", "dbus.service")

    def asked() -> bool | None:
        try:
            return units.ensure_started("later.service") or None
        except TryLater:
            return None

    assert wait_for(asked, "the bus")
