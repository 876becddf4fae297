"""Whether a file system is the very one that we made: its UUID, read by the number of the device."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from clusters.disks import attached
from protokube.host.superblock import ext4_uuid

NONCE = "6f1c7a52-9f0e-4a5c-8a43-6d1b8f0e2c11"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    made = tmp_path / "disk.img"
    made.touch()
    os.truncate(made, 16 * 1024 * 1024)
    return made


def test_the_uuid_of_an_ext4_is_read_mounted_or_not(image: Path, tmp_path: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", "-F", "-U", NONCE, image], check=True)
    point = tmp_path / "point"
    point.mkdir()
    with attached(image) as device:
        assert ext4_uuid(device.number) == NONCE
        subprocess.run(["mount", device.path, point], check=True)
        try:
            assert ext4_uuid(device.number) == NONCE
        finally:
            subprocess.run(["umount", point], check=True)


def test_a_blank_device_has_none(image: Path) -> None:
    with attached(image) as device:
        assert ext4_uuid(device.number) is None


def test_another_file_system_has_none(image: Path) -> None:
    image.write_bytes(b"XFSB" + bytes(4 * 1024 * 1024))
    with attached(image) as device:
        assert ext4_uuid(device.number) is None


def test_a_device_that_is_not_there_has_none_and_no_node_is_left_behind() -> None:
    assert ext4_uuid((7, 4091)) is None
    assert not list(Path("/dev").glob(".protokube-*"))
