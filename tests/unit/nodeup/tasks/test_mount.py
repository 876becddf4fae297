from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from protokube.errors import InvalidRequest, ProtokubeError, Refused
from protokube.host import Content, Probed
from protokube.nodeup.facts import Facts
from protokube.nodeup.machine import Machine, Ran
from protokube.nodeup.tasks import mount
from protokube.nodeup.values import Mount

DATA = Mount(device="/dev/disk/by-id/x", path="/data", format=True)


@pytest.mark.parametrize("content", list(Content))
@pytest.mark.parametrize("format_it", [True, False])
def test_only_a_blank_disk_is_ever_formatted_and_only_if_that_was_asked_for(content: Content, format_it: bool) -> None:
    wanted = Mount(device="/dev/x", path="/data", format=format_it)
    seen = Probed(content=content, description="something", uuid="5a1d7d3c-0000-4000-8000-000000000000")

    if content is Content.EXT4:
        assert mount.what_is_on_it(wanted, seen) == ()
    elif content is Content.BLANK and format_it:
        assert [each.want for each in mount.what_is_on_it(wanted, seen)] == ["ext4"]
    else:
        with pytest.raises(Refused):
            mount.what_is_on_it(wanted, seen)


def test_a_format_of_ours_that_was_cut_short_is_finished_and_no_other() -> None:
    unfinished = Probed(content=Content.DIRTY, description="a format", uuid=mount.identity(DATA))

    assert [each.saw for each in mount.what_is_on_it(DATA, unfinished)] == ["a format of ours, unfinished"]
    for other in (Mount(device="/dev/other", path="/data", format=True), Mount(device=DATA.device, path="/data")):
        with pytest.raises(Refused):
            mount.what_is_on_it(other, unfinished)


def test_another_wanted_file_system_is_accepted_only_alone() -> None:
    wanted = Mount(device="/dev/x", path="/data", file_system="xfs")

    assert mount.what_is_on_it(wanted, Probed(content=Content.FOREIGN, description="an xfs file system")) == ()
    with pytest.raises(Refused):
        mount.what_is_on_it(wanted, Probed(content=Content.FOREIGN, description="several signatures at once"))
    with pytest.raises(Refused):
        mount.what_is_on_it(wanted, Probed(content=Content.EXT4, description="an ext4 file system"))


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (Mount(device="/dev/x", path="data"), InvalidRequest),
        (Mount(device="/dev/x\nOptions=suid", path="/data"), InvalidRequest),
        (Mount(device="/dev/x", path="/"), Refused),
        (Mount(device="/dev/x", path="/data", file_system="xfs", format=True), Refused),
    ],
)
def test_what_cannot_be_mounted_is_refused(wanted: Mount, error: type[ProtokubeError]) -> None:
    with pytest.raises(error):
        mount.check(wanted)


def test_in_an_image_there_is_only_the_unit(tmp_path: Path) -> None:
    facts = Facts(distribution="debian", distribution_version="12")
    machine = Machine(facts=facts, run=lambda *_, **__: Ran(0, ""), root=tmp_path)

    mount.apply(DATA, mount.look(DATA, machine), machine, lambda _: None)

    assert mount.look(DATA, machine) == ()
    assert (tmp_path / "etc/systemd/system/data.mount").read_text() == (
        "# Written by protokube nodeup.\n[Unit]\nDescription=/data\n\n[Mount]\nWhat=/dev/disk/by-id/x\nWhere=/data\n"
        "Type=ext4\nOptions=defaults\n\n[Install]\nWantedBy=local-fs.target\n"
    )
    assert (tmp_path / "etc/systemd/system/local-fs.target.wants/data.mount").is_symlink()


def test_a_blank_disk_is_not_formatted_without_the_options_that_were_asked_for() -> None:
    asked = replace(DATA, format=True, format_options=("-m", "1"))

    with pytest.raises(Refused, match="options for that are not supported"):
        mount.what_is_on_it(asked, Probed(content=Content.BLANK, description="blank"))
    assert mount.what_is_on_it(asked, Probed(content=Content.EXT4, description="an ext4 file system")) == ()
