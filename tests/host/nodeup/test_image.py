"""The root of an image: prepared while nothing of it runs, then booted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.machines import debs
from clusters.machines.chroot import Chroot
from clusters.machines.machine import SystemdMachine
from clusters.machines.tasks import DRIVER, driven
from protokube.nodeup.values import Packages, Unit

INSTALL = """[Install]
WantedBy=multi-user.target graphical.target
RequiredBy=basic.target
Alias=other.service
Also=also.timer
"""
TIMER = "[Timer]\nOnBootSec=1h\n[Install]\nWantedBy=timers.target\n"
FOLDER = "etc/systemd/system"


@pytest.fixture
def root() -> Iterator[Chroot]:
    made = Chroot()
    yield made
    made.close()


def links(root: Chroot) -> dict[str, str]:
    folder = root.files / FOLDER
    return {str(each.relative_to(folder)): str(each.readlink()) for each in folder.rglob("*") if each.is_symlink()}


def test_the_links_are_those_that_systemctl_makes(root: Chroot) -> None:
    content = f"[Service]\nExecStart=/bin/true\n{INSTALL}"
    before = links(root)
    (root.files / FOLDER / "also.timer").write_text(TIMER)

    assert root.start(Unit(name="unit.service", content=content, enabled=True)).one().well
    ours = links(root)
    assert root.start(Unit(name="unit.service", content=content, enabled=False)).one().well
    assert links(root) == before
    root.run("systemctl", "--root=/", "enable", "unit.service")

    assert ours == links(root)
    assert set(ours) - set(before) == {
        "multi-user.target.wants/unit.service",
        "graphical.target.wants/unit.service",
        "basic.target.requires/unit.service",
        "other.service",
        "timers.target.wants/also.timer",
    }


def test_what_was_put_into_an_image_runs_at_its_first_boot(tmp_path: Path) -> None:
    machine = SystemdMachine("image", boot=False)
    try:
        debs.publish(machine.files / "repository")
        debs.configure(machine.files)
        content = "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n"
        tasks = [
            Packages(names=("tiny-service",)),
            Unit(name="ours.service", content=content, enabled=True, running=True),
        ]
        root = str(machine.folder / "root")
        done = driven(machine.keeper.enter(*DRIVER), tasks, root).wait()
        assert all(each.well for each in done), done
        assert not (machine.files / "service-was-start").exists()

        machine.boot()

        assert machine.show("ours.service", "ActiveState") == "active"
        machine.copy_protokube()
        assert [each.changes for each in machine.start(*tasks).wait()] == [[], []]
    finally:
        machine.close()


def test_on_a_running_machine_no_service_of_a_package_starts_either() -> None:
    machine = SystemdMachine("packages")
    try:
        machine.copy_protokube()
        debs.publish(machine.files / "repository")
        debs.configure(machine.files)

        done = machine.start(Packages(names=("tiny-needs", "tiny-service"))).one()

        assert done.well, done
        assert machine.show("tiny.service", "ActiveState") == "inactive"
        assert not (machine.files / "service-was-start").exists()
        assert machine.start(Unit(name="tiny.service", running=True)).one().well
        assert (machine.files / "service-was-start").exists()
    finally:
        machine.close()
