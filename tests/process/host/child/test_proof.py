"""The verdict on a device: one sentence for each thing that can be on it, and blank only when that is proven."""

from __future__ import annotations

import subprocess

import pytest

from clusters.disks import MIB, SIZE, UUID, an_image
from protokube.host.child import proof
from protokube.host.child.blkid import Signatures
from protokube.host.child.ext4 import BLOCK
from protokube.host.child.proof import Finding, judge

AN_EXT4 = Signatures(type="ext4", usage="filesystem", uuid=UUID)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The first block of an ext4 of 32 MiB with UUID."""
    image = an_image(tmp_path_factory.mktemp("ext4"), size=32 * MIB)
    options = ["-q", "-F", "-O", "metadata_csum", "-U", UUID]
    subprocess.run(["mkfs.ext4", *options, image], check=True, capture_output=True)
    return image.read_bytes()[:BLOCK]


def test_a_whole_ext4_is_ext4_with_its_uuid(head: bytes) -> None:
    assert judge(AN_EXT4, head, 1024, SIZE) == Finding(proof.EXT4, "an ext4 file system", UUID)
