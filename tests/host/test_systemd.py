"""Units are started over a real message bus; behind it a service that behaves as each test says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from host.debian import unpacked
from protokube.errors import Refused, TryLater
from protokube.host.systemd import SystemdUnits

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
  </policy>
</busconfig>
"""
NO_SUCH = "org.freedesktop.systemd1.NoSuchUnit"
LIBRARIES = ["libdbus-1-3", "libexpat1", "libapparmor1", "libcap-ng0"]


def dbus_daemon() -> tuple[str, dict[str, str]]:
    """The machine's own, or Debian's package with what it needs, unpacked."""
    if found := shutil.which("dbus-daemon"):
        return found, {}
    folders = [folder for each in LIBRARIES for folder in (unpacked(each)).glob("**/*-linux-gnu")]
    binary = unpacked("dbus-daemon") / "usr/bin/dbus-daemon"
    return str(binary), {"LD_LIBRARY_PATH": ":".join(map(str, folders))}


class Machine:
    """A message bus, and a systemd on it."""

    def __init__(self, work: Path) -> None:
        self.socket, self._work = work / "bus", work
        self.address = f"unix:path={self.socket}"
        self._processes: list[subprocess.Popen[str]] = []
        (work / "bus.conf").write_text(CONFIG.format(socket=self.socket))

    def start_bus(self) -> subprocess.Popen[str]:
        binary, environment = dbus_daemon()
        command = [binary, f"--config-file={self._work / 'bus.conf'}", "--nofork", "--print-address"]
        return self._start(command, os.environ | environment)

    def start_systemd(self, **units: dict[str, str]) -> subprocess.Popen[str]:
        told = {f"{name}.service": each for name, each in units.items()}
        script = str(Path(__file__).with_name("fake_systemd.py"))
        return self._start([sys.executable, script, self.address, json.dumps(told), str(self._work / "log")], None)

    def _start(self, command: list[str], environment: dict[str, str] | None) -> subprocess.Popen[str]:
        """It runs, and has said that it is ready."""
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self._processes.append(process)
        assert process.stdout
        assert process.stdout.readline()
        return process

    @property
    def started(self) -> list[str]:
        log = self._work / "log"
        return log.read_text().splitlines() if log.exists() else []

    def units(self, timeout: float = 10.0) -> SystemdUnits:
        return SystemdUnits(self.address, timeout)

    def close(self) -> None:
        for each in reversed(self._processes):
            each.kill()
            each.wait()
            assert each.stdout
            each.stdout.close()


Boot = Callable[..., Machine]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.close()


@pytest.fixture
def boot(machine: Machine) -> Boot:
    """A machine with these units."""

    def run(**units: dict[str, str]) -> Machine:
        machine.start_bus()
        machine.start_systemd(**units)
        return machine

    return run


@pytest.mark.parametrize("state", ["inactive", "failed", "deactivating"])
def test_a_unit_that_does_not_run_is_started_once(boot: Boot, state: str) -> None:
    booted = boot(kubelet={"active": state})

    assert [booted.units().ensure_started("kubelet.service") for _ in range(3)] == [True, False, False]
    assert booted.started == ["kubelet.service replace"]


@pytest.mark.parametrize("state", ["active", "activating", "reloading"])
def test_a_unit_that_runs_or_is_about_to_is_left_alone(boot: Boot, state: str) -> None:
    booted = boot(kubelet={"active": state})

    assert not booted.units().ensure_started("kubelet.service")
    assert booted.started == []


def test_how_long_a_unit_has_been_running_is_told_by_the_clock_that_never_jumps(boot: Boot) -> None:
    now = time.monotonic()
    since = str(int((now - 100) * 1e6))
    booted = boot(
        kubelet={"active": "active", "since": since},
        starting={"active": "activating", "since": since},
        odd={"active": "active"},
    )

    told = booted.units().running_for("kubelet.service")

    assert told is not None
    assert 100 <= told <= 100.1 + time.monotonic() - now
    for unit in ("starting.service", "odd.service", "absent.service"):
        assert booted.units().running_for(unit) is None


def test_a_unit_is_started_anew_only_if_it_runs_and_without_waiting(boot: Boot) -> None:
    booted = boot(kubelet={"active": "active"})

    booted.units().restart("kubelet.service")

    assert booted.started == ["restart kubelet.service replace"]


@pytest.mark.parametrize(("error", "kind"), [(NO_SUCH, Refused), ("org.freedesktop.systemd1.ShuttingDown", TryLater)])
def test_a_unit_that_cannot_be_started_anew_is_told_like_one_that_cannot_be_started(
    boot: Boot, error: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        boot(kubelet={"active": "active", "start": error}).units().restart("kubelet.service")


def test_the_address_of_the_bus_comes_from_the_environment(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    booted = boot(kubelet={"active": "inactive"})
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", booted.address)

    assert SystemdUnits(timeout=10.0).ensure_started("kubelet.service")


@pytest.mark.parametrize(
    ("unit", "told", "hint"),
    [
        ({"load": "not-found"}, "there is no unit kubelet.service", "nodeup"),
        ({"load": "masked"}, "kubelet.service is masked", "unmask"),
        ({"load": "bad-setting"}, "is not valid", "systemctl status"),
        ({"load": "error"}, "cannot be read", "systemctl status"),
        ({"start": NO_SUCH}, "will not start kubelet.service", "nodeup"),
        ({"start": "org.freedesktop.systemd1.UnitMasked"}, "will not start", "unmask"),
        ({"start": "org.freedesktop.DBus.Error.AccessDenied"}, "will not start", "root"),
    ],
)
def test_what_asking_again_cannot_mend_is_for_a_person(boot: Boot, unit: dict[str, str], told: str, hint: str) -> None:
    booted = boot(kubelet={"active": "inactive"} | unit)

    with pytest.raises(Refused, match=told) as caught:
        booted.units().ensure_started("kubelet.service")

    assert hint in caught.value.hint
    assert caught.value.saw


def test_a_unit_that_systemd_never_heard_of_and_one_with_an_impossible_name_are_refused(boot: Boot) -> None:
    booted = boot()

    with pytest.raises(Refused, match=r"there is no unit kubelet\.service"):
        booted.units().ensure_started("kubelet.service")
    with pytest.raises(Refused, match="will not start") as caught:
        booted.units().ensure_started("no unit at all")
    assert "InvalidArgs" in caught.value.saw


def test_a_unit_that_runs_though_its_file_was_masked_is_left_alone(boot: Boot) -> None:
    assert not boot(kubelet={"active": "active", "load": "masked"}).units().ensure_started("kubelet.service")


def test_an_error_that_may_pass_is_for_later(boot: Boot) -> None:
    booted = boot(kubelet={"active": "inactive", "start": "org.freedesktop.systemd1.ShuttingDown"})

    with pytest.raises(TryLater, match="did not start") as caught:
        booted.units().ensure_started("kubelet.service")

    assert "ShuttingDown" in caught.value.saw


def bounded(units: SystemdUnits, seconds: float) -> TryLater:
    """What it says when there is no answer; within the time."""
    started = time.monotonic()
    with pytest.raises(TryLater) as caught:
        units.ensure_started("kubelet.service")
    assert time.monotonic() - started < seconds
    assert caught.value.saw
    return caught.value


@pytest.mark.parametrize("slow", [{"hang": "yes"}, {"start": "hang"}])
def test_a_systemd_that_does_not_answer_is_given_up_in_time(boot: Boot, slow: dict[str, str]) -> None:
    booted = boot(kubelet={"active": "inactive"} | slow)

    assert "cannot ask systemd" in bounded(booted.units(0.4), 10).message


def test_a_bus_that_is_frozen_is_given_up_in_time(machine: Machine) -> None:
    bus = machine.start_bus()
    bus.send_signal(signal.SIGSTOP)
    time.sleep(0.05)

    bounded(machine.units(0.4), 10)


def test_a_bus_without_systemd_and_no_bus_at_all_are_for_later_and_heal(machine: Machine) -> None:
    units = machine.units()
    bounded(units, 15)

    bus = machine.start_bus()
    assert "ServiceUnknown" in bounded(units, 15).saw
    machine.start_systemd(kubelet={"active": "inactive"})
    assert units.ensure_started("kubelet.service")

    bus.kill()
    bus.wait()
    bounded(units, 15)
    machine.socket.unlink()
    bounded(units, 15)


def test_a_bus_of_a_kind_we_do_not_speak_is_for_later() -> None:
    bounded(SystemdUnits("tcp:host=127.0.0.1,port=1"), 15)
