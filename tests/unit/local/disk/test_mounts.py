"""Reading the kernel's mount table."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.local.disk.mounts import MountedAt, one_table_of_each_namespace, read_table

TABLE = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 22 7:3 / /mnt/master-vol\\0401 rw,noatime master:1 - ext4 /dev/loop3 rw
40 22 0:44 /x\\134y /a\\011b\\134c rw shared:5 master:2 - tmpfs tmpfs rw
"""


def test_every_mount_is_read_with_its_device_and_its_point_as_it_is_called() -> None:
    assert list(read_table(7, TABLE)) == [
        MountedAt(7, (254, 0), Path("/")),
        MountedAt(7, (7, 3), Path("/mnt/master-vol 1")),
        MountedAt(7, (0, 44), Path("/a\tb\\c")),
    ]


@pytest.mark.parametrize("table", ["", None])
def test_a_process_that_ends_while_it_is_asked_hides_no_mount_of_its_namespace(
    tmp_path: Path, table: str | None
) -> None:
    """Whichever is asked first: the folder is listed in any order."""
    for ending, staying in ((1, 2), (2, 1)):
        proc = tmp_path / f"{ending}"
        for process in (ending, staying):
            (proc / f"{process}/ns").mkdir(parents=True)
            (proc / f"{process}/ns/mnt").symlink_to("mnt:[4026531840]")
        (proc / f"{staying}/mountinfo").write_text(TABLE)
        if table is not None:
            (proc / f"{ending}/mountinfo").write_text(table)

        assert list(one_table_of_each_namespace(proc)) == [(staying, TABLE)]
