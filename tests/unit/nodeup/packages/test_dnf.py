"""What dnf and rpm are told, and what their answers mean. None of it ever ran on a machine with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from protokube.errors import Refused, TryLater
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.packages import dnf
from protokube.nodeup.packages.names import asked
from protokube.nodeup.packages.status import Package
from protokube.nodeup.tasks import packages
from protokube.nodeup.values import Packages

QUERIED = "containerd.io\t1.6.20-3.1.el9\npackage socat is not installed\nkernel-core\t5.14.0-1.el9\n"
LOCKED = "Last metadata expiration check: 0:01:00 ago\ncontainerd.io-0:1.6.20-3.1.el9.*\nkernel-core-extra-0:1-1.*\n"


def test_packages_come_from_the_lines_of_rpm_and_holds_from_those_of_versionlock() -> None:
    assert dnf.read(QUERIED, LOCKED) == {
        "containerd.io": Package(name="containerd.io", version="1.6.20-3.1.el9", state="installed", held=True),
        "kernel-core": Package(name="kernel-core", version="5.14.0-1.el9", state="installed"),
    }


def test_the_commands() -> None:
    wanted = asked(["containerd.io=1.6.20", "socat"])

    assert [
        " ".join(dnf.query(wanted)),
        " ".join(dnf.install(wanted)),
        " ".join(dnf.unlock(["socat"])),
        " ".join(dnf.lock(["containerd.io", "socat"])),
    ] == [
        r"rpm --query --queryformat %{NAME}\t%{EVR}\n containerd.io socat",
        "dnf --assumeyes --quiet --setopt=install_weak_deps=False install python3-dnf-plugin-versionlock"
        " containerd.io-1.6.20 socat",
        "dnf --quiet versionlock delete socat",
        "dnf --quiet versionlock add containerd.io socat",
    ]


class FarDnf:
    """A machine with rpm's answers."""

    def __init__(self, queried: str, code: int = 0) -> None:
        self.queried, self.code, self.commands = queried, code, list[str]()

    def __call__(
        self,
        words: Sequence[str],
        *,
        seconds: float = 600.0,
        environment: dict[str, str] | None = None,
        say: Say | None = None,
    ) -> Ran:
        self.commands.append(" ".join(words[:3]))
        if words[0] == "rpm":
            return Ran(1, self.queried)
        return Ran(1 if "list" in words else self.code, "no such command" if "list" in words else "it failed")


def machine(run: FarDnf, root: Path, kind: PackageManager = PackageManager.DNF) -> Machine:
    return Machine(
        facts=Facts(distribution="rocky", distribution_version="9", package_manager=kind), run=run, root=root
    )


def test_what_is_missing_is_told_and_a_failure_is_for_later(tmp_path: Path) -> None:
    wanted = Packages(names=("containerd.io", "socat"))

    assert [str(each) for each in packages.look(wanted, machine(FarDnf(QUERIED), tmp_path))] == [
        "containerd.io hold: no -> yes",
        "socat: not installed -> installed",
        "socat hold: no -> yes",
    ]
    with pytest.raises(TryLater, match="dnf failed"):
        packages.apply(wanted, (), machine(FarDnf(QUERIED, 1), tmp_path), lambda _: None)


def test_a_distribution_without_a_known_package_manager_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="rocky has neither apt nor dnf, and socat is to be installed"):
        packages.look(Packages(names=("socat",)), machine(FarDnf(""), tmp_path, PackageManager.NONE))
