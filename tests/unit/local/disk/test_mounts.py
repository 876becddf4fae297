"""Reading the kernel's mount table."""

from __future__ import annotations

from pathlib import Path

from protokube.local.disk.mounts import MountedAt, one_process_of_each_namespace, read_table

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


def test_each_namespace_is_looked_at_once() -> None:
    seen = [Path(f"/proc/{pid}/ns/mnt").readlink() for pid in one_process_of_each_namespace()]

    assert len(seen) == len(set(seen))
    assert Path("/proc/self/ns/mnt").readlink() in seen
