"""libblkid tells nothing, something, several things and an error apart, and so do we."""

from __future__ import annotations

import subprocess
from pathlib import Path

from clusters.disks import OTHER_UUID, an_image
from protokube.host.child.blkid import Signatures, signatures


def test_an_ext4_is_known_with_its_uuid_and_label(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "etcd", "-U", OTHER_UUID, image], check=True, capture_output=True)

    found = signatures(str(image))

    assert found == Signatures(False, "ext4", "filesystem", OTHER_UUID, "etcd", "", False)
    assert str(found) == 'an ext4 file system labelled "etcd"'
