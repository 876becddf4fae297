"""Units in the root of an image: files and links alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.errors import Refused
from protokube.nodeup.facts import Facts
from protokube.nodeup.machine import Machine, Ran
from protokube.nodeup.tasks import unit
from protokube.nodeup.values import Unit

CONTENT = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
FOLDER = "etc/systemd/system"
LINK = f"{FOLDER}/multi-user.target.wants/a.service"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    facts = Facts(distribution="debian", distribution_version="12")
    return Machine(facts=facts, run=lambda *_, **__: Ran(0, ""), root=tmp_path)


def carried_out(wanted: Unit, machine: Machine) -> list[str]:
    """What differed; nothing does afterwards."""
    changes = unit.look(wanted, machine)
    unit.apply(wanted, changes, machine, lambda _: None)
    assert unit.look(wanted, machine) == ()
    return [str(each) for each in changes]


def test_a_unit_in_an_image_is_written_and_enabled_and_nothing_is_started(machine: Machine) -> None:
    wanted = Unit(name="a.service", content=CONTENT, enabled=True, running=True, drop_ins={"10.conf": "[Unit]\n"})

    assert carried_out(wanted, machine) == [
        "/etc/systemd/system/a.service: missing -> written",
        "/etc/systemd/system/a.service.d/10.conf: missing -> written",
        "enabled: no -> yes",
    ]
    assert str((machine.root / LINK).readlink()) == "/etc/systemd/system/a.service"
    assert unit.started_at("a.service", machine) is None
    assert not unit.restart(wanted, machine)


def test_a_unit_of_a_package_is_enabled_where_the_package_put_it(machine: Machine) -> None:
    path = machine.root / "usr/lib/systemd/system/a.service"
    path.parent.mkdir(parents=True)
    path.write_text(CONTENT)

    carried_out(Unit(name="a.service", enabled=True), machine)
    assert str((machine.root / LINK).readlink()) == "/usr/lib/systemd/system/a.service"

    carried_out(Unit(name="a.service", enabled=False), machine)
    assert not (machine.root / LINK).is_symlink()


def test_what_is_enabled_with_it_is_enabled_too_and_circles_end(machine: Machine) -> None:
    folder = machine.root / FOLDER
    folder.mkdir(parents=True)
    (folder / "b.socket").write_text("[Install]\nWantedBy=sockets.target\nAlso=a.service\n")

    carried_out(Unit(name="a.service", content=CONTENT + "Also=b.socket absent.service\n", enabled=True), machine)

    assert (folder / "sockets.target.wants/b.socket").is_symlink()


def test_a_half_written_file_and_a_wrong_mode_are_only_differences(machine: Machine) -> None:
    path = machine.root / FOLDER / "a.service"
    path.parent.mkdir(parents=True)
    path.write_text(CONTENT[:10])
    assert carried_out(Unit(name="a.service", content=CONTENT), machine) == [
        "/etc/systemd/system/a.service: other content -> as wanted"
    ]
    path.chmod(0o600)
    assert carried_out(Unit(name="a.service", content=CONTENT), machine) == [
        "/etc/systemd/system/a.service mode: 600 -> 644"
    ]


def test_a_masked_unit_a_link_and_a_folder_are_refused(machine: Machine) -> None:
    folder = machine.root / FOLDER
    folder.mkdir(parents=True)
    (folder / "masked.service").symlink_to("/dev/null")
    (folder / "linked.service").symlink_to("/opt/x.service")
    (folder / "folder.service").mkdir()

    for name, text in (("masked", "is masked"), ("linked", "not ours to write"), ("folder", "not ours to write")):
        with pytest.raises(Refused, match=text):
            unit.look(Unit(name=f"{name}.service", content=CONTENT), machine)


@pytest.mark.parametrize("name", ["../x.conf", "x", ".x.conf", "a/b.conf"])
def test_a_drop_in_whose_name_is_none_is_refused(machine: Machine, name: str) -> None:
    with pytest.raises(Refused, match="is no name of a drop-in"):
        unit.look(Unit(name="a.service", drop_ins={name: ""}), machine)


def test_a_unit_that_cannot_be_enabled_is_refused(machine: Machine) -> None:
    with pytest.raises(Refused, match="cannot be enabled"):
        unit.apply(Unit(name="a.service", content="[Service]\n", enabled=True), (), machine, lambda _: None)
