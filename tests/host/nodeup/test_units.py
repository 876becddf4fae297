"""Units on a machine that real systemd booted; the machine is shared by the tests of this file, the units are not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from clusters.machines.machine import SystemdMachine
from clusters.machines.tasks import Done
from clusters.machines.waiting import wait_for
from protokube.nodeup.values import Task, Unit

SLEEPS = "[Service]\nExecStart=/bin/sleep {seconds}\n[Install]\nWantedBy=multi-user.target\n"


@pytest.fixture(scope="module")
def machine() -> Iterator[SystemdMachine]:
    made = SystemdMachine("units")
    made.copy_protokube()
    yield made
    made.close()


def carry_out(machine: SystemdMachine, task: Task) -> Done:
    return machine.start(task).one()


def service(name: str, seconds: int = 1000, **values: object) -> Unit:
    return Unit(name=f"{name}.service", content=SLEEPS.format(seconds=seconds), **values)  # type: ignore[arg-type]


def test_a_new_unit_is_written_enabled_and_started_and_the_second_run_does_nothing(machine: SystemdMachine) -> None:
    wanted = service("new", enabled=True, running=True)

    first = carry_out(machine, wanted)
    pid = machine.show("new.service", "MainPID")
    again = carry_out(machine, wanted)

    assert first.well, first
    assert first.changes == [
        "/etc/systemd/system/new.service: missing -> written",
        "enabled: no unit -> enabled",
        "running: inactive -> active",
    ]
    assert machine.run("systemctl", "is-enabled", "new.service") == "enabled"
    assert again.changes == []
    assert machine.show("new.service", "MainPID") == pid
    assert (machine.files / "etc/systemd/system/new.service").stat().st_mode & 0o777 == 0o644


def test_another_content_restarts_what_runs(machine: SystemdMachine) -> None:
    assert carry_out(machine, service("changed", running=True)).well
    pid = machine.show("changed.service", "MainPID")

    assert carry_out(machine, service("changed", 2000, running=True)).well

    assert machine.show("changed.service", "MainPID") != pid
    assert "2000" in machine.show("changed.service", "ExecStart")


def test_a_run_that_was_killed_before_the_restart_is_finished_by_the_next_one(machine: SystemdMachine) -> None:
    assert carry_out(machine, service("stale", running=True)).well
    (machine.files / "etc/systemd/system/stale.service").write_text(SLEEPS.format(seconds=2000))
    machine.run("systemctl", "daemon-reload")

    done = carry_out(machine, service("stale", 2000, running=True))

    assert done.changes == ["restart: started before its file was written -> restarted"]
    assert done.well
    assert (
        machine.run("sh", "-c", "tr '\\0' ' ' < /proc/$(systemctl show -P MainPID stale.service)/cmdline")
        == "/bin/sleep 2000"
    )


def test_a_file_from_a_time_when_the_clock_was_ahead_restarts_once_at_most(machine: SystemdMachine) -> None:
    wanted = service("ahead", running=True)
    assert carry_out(machine, wanted).well
    path = machine.files / "etc/systemd/system/ahead.service"
    os.utime(path, (time.time() + 3600, time.time() + 3600))

    assert carry_out(machine, wanted).well
    assert carry_out(machine, wanted).changes == []


def test_a_half_written_file_is_only_a_difference(machine: SystemdMachine) -> None:
    (machine.files / "etc/systemd/system/half.service").write_text("[Service]\nExecSta")
    machine.run("systemctl", "daemon-reload")

    assert carry_out(machine, service("half", running=True)).well


def test_what_the_agent_starts_is_neither_started_nor_restarted_nor_stopped(machine: SystemdMachine) -> None:
    assert carry_out(machine, service("agents", enabled=False)).well
    assert machine.show("agents.service", "ActiveState") == "inactive"
    machine.run("systemctl", "start", "agents.service")
    pid = machine.show("agents.service", "MainPID")

    assert carry_out(machine, service("agents", 2000, enabled=False)).well

    assert machine.show("agents.service", "MainPID") == pid
    assert machine.show("agents.service", "NeedDaemonReload") == "no"


def test_drop_ins_of_ours_are_written_and_those_of_the_user_stay(machine: SystemdMachine) -> None:
    folder = machine.files / "etc/systemd/system/extended.service.d"
    folder.mkdir(parents=True)
    (folder / "50-user.conf").write_text("[Service]\nEnvironment=USER=1\n")

    done = carry_out(machine, service("extended", running=True, drop_ins={"10-ours.conf": "[Service]\nNice=5\n"}))

    assert done.well, done
    assert machine.show("extended.service", "Nice") == "5"
    assert machine.show("extended.service", "Environment") == "USER=1"
    changed = carry_out(machine, service("extended", running=True, drop_ins={"10-ours.conf": "[Service]\nNice=6\n"}))
    assert changed.well
    assert machine.run("ps", "-o", "ni=", "-p", machine.show("extended.service", "MainPID")).strip() == "6"


def test_a_unit_is_disabled_and_stopped(machine: SystemdMachine) -> None:
    assert carry_out(machine, service("unwanted", enabled=True, running=True)).well

    done = carry_out(machine, Unit(name="unwanted.service", enabled=False, running=False))

    assert done.changes == ["enabled: enabled -> disabled", "running: active -> inactive"]
    assert done.well
    assert carry_out(machine, Unit(name="not-there.service", enabled=False, running=False)).changes == []


def test_a_masked_unit_is_refused(machine: SystemdMachine) -> None:
    machine.run("systemctl", "mask", "masked.service")

    for wanted in (service("masked", running=True), Unit(name="masked.service", running=True)):
        done = carry_out(machine, wanted)
        assert done.kind == "Refused"
        assert done.error.splitlines()[0] == "masked.service is masked"
    assert (machine.files / "etc/systemd/system/masked.service").is_symlink()


def test_a_link_of_the_user_in_the_place_of_our_file_is_refused(machine: SystemdMachine) -> None:
    (machine.files / "etc/systemd/system/linked.service").symlink_to("/opt/linked.service")

    done = carry_out(machine, service("linked", running=True))

    assert done.kind == "Refused"
    assert "a link to /opt/linked.service" in done.error


def test_a_service_that_fails_is_refused_with_its_result_and_its_last_lines(machine: SystemdMachine) -> None:
    content = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo no room for me; exit 7'\n"

    done = carry_out(machine, Unit(name="failing.service", content=content, running=True))

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "failing.service did not start"
    assert "result exit-code, exit status 7" in done.error
    assert "no room for me" in done.error


def test_a_service_that_dies_and_is_started_again_and_again_is_refused(machine: SystemdMachine) -> None:
    content = "[Service]\nType=notify\nRestart=always\nRestartSec=60\nExecStart=/bin/false\n"

    done = carry_out(machine, Unit(name="dying.service", content=content, running=True))

    assert done.kind == "Refused"
    assert "auto-restart" in done.error


def test_a_unit_that_failed_too_often_is_started_once_it_is_mended(machine: SystemdMachine) -> None:
    broken = "[Unit]\nStartLimitBurst=1\nStartLimitIntervalSec=1h\n[Service]\nType=notify\nExecStart=/bin/false\n"
    for _ in range(2):
        assert carry_out(machine, Unit(name="mended.service", content=broken, running=True)).kind == "Refused"

    assert carry_out(machine, service("mended", running=True)).well


def test_a_service_whose_file_is_not_valid_is_refused(machine: SystemdMachine) -> None:
    done = carry_out(machine, Unit(name="invalid.service", content="[Service]\nNice=1\n", running=True))

    assert done.kind == "Refused"
    assert "the file of invalid.service is not valid" in done.error


def test_a_unit_without_an_install_section_cannot_be_enabled(machine: SystemdMachine) -> None:
    done = carry_out(machine, Unit(name="bare.service", content="[Service]\nExecStart=/bin/true\n", enabled=True))

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "bare.service cannot be enabled: nothing says when it starts"


def test_a_unit_that_nobody_brought_is_refused(machine: SystemdMachine) -> None:
    done = carry_out(machine, Unit(name="nobodys.service", running=True))

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "there is no unit nobodys.service"


def test_what_is_enabled_runs_after_a_reboot_and_the_file_is_not_newer_than_it(machine: SystemdMachine) -> None:
    wanted = service("lasting", enabled=True, running=True)
    assert carry_out(machine, wanted).well

    machine.reboot()

    assert carry_out(machine, wanted).changes == []


def test_facts_of_a_machine_are_those_of_its_systemd(machine: SystemdMachine) -> None:
    running = machine.start(names=["dbus", "no-such-thing"], units=["no-such.service", "dbus.service", "dbus.socket"])
    running.wait()

    assert running.said == ["active: dbus.service"]
    assert running.facts["distribution"] == "debian"
    assert running.facts["distribution_version"] == "12"
    assert running.facts["package_manager"] == "apt"
    assert running.facts["systemd"] == int(machine.run("systemctl", "--version").split()[1])
    assert running.facts["host_name"] == "units"
    assert running.facts["container"] is True
    assert [name for name, _ in running.facts["available"]] == ["dbus"]  # type: ignore[attr-defined]


def test_without_a_bus_it_is_for_later_and_the_facts_know_no_systemd(machine: SystemdMachine) -> None:
    machine.run("systemctl", "stop", "dbus.socket", "dbus.service")
    try:
        running = machine.start(service("later", running=True))
        (done,) = running.wait()
        assert done.kind == "TryLater"
        assert "cannot ask systemd" in done.error
        assert running.facts["systemd"] == 0
        assert running.said[0].splitlines()[0] == "systemd does not answer on D-Bus"
    finally:
        machine.run("systemctl", "start", "dbus.socket")
    assert carry_out(machine, service("later", running=True)).well


def test_a_run_that_is_killed_while_a_job_runs_is_finished_by_the_next_one(machine: SystemdMachine) -> None:
    waits = "/bin/sh -c 'while [ ! -e /go-on ]; do sleep 0.05; done'"
    content = f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={waits}\n"
    wanted = Unit(name="slow.service", content=content, running=True)
    running = machine.start(wanted)
    wait_for(lambda: machine.show("slow.service", "ActiveState") == "activating", "the start")
    running.kill()
    (machine.files / "go-on").touch()

    assert carry_out(machine, wanted).well
