"""libblkid tells nothing, something, several things and an error apart, and so do we."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from builders import signatures as signs
from clusters.disks import SIZE, an_image, patch
from protokube.host.child import blkid
from protokube.host.child.blkid import NONE, Signatures, signatures
from protokube.host.child.reading import Unreadable

BUILT = [
    (signs.xfs, "xfs", "", 'an xfs file system labelled "pgdata"'),
    (signs.btrfs, "btrfs", "", "a btrfs file system"),
    (signs.luks, "crypto_LUKS", "", "a crypto_LUKS signature"),
    (signs.lvm, "LVM2_member", "", "an LVM2_member signature"),
    (signs.vfat, "vfat", "", "a vfat file system"),
    (signs.gpt, "", "gpt", "a gpt partition table"),
    (signs.gpt_at_the_end_only, "", "gpt", "a gpt partition table"),
    (signs.dos_table, "", "dos", "a dos partition table"),
]


def test_a_blank_device_has_no_signature(tmp_path: Path) -> None:
    assert signatures(str(an_image(tmp_path))) == NONE
    assert str(NONE) == "no signature"


@pytest.mark.parametrize(("build", "kind", "table", "text"), BUILT, ids=[row[0].__name__ for row in BUILT])
def test_a_signature_is_known_and_told(
    tmp_path: Path, build: Callable[[int], dict[int, bytes]], kind: str, table: str, text: str
) -> None:
    image = an_image(tmp_path)
    patch(image, build(SIZE))

    found = signatures(str(image))

    assert (found.type, found.table, found.several) == (kind, table, False)
    assert str(found) == text


def test_a_signature_whose_checksum_is_wrong_is_still_a_signature(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    patch(image, {**signs.lvm(SIZE), 512 + 100: b"changed"})

    found = signatures(str(image))

    assert (found.type, found.damaged) == ("LVM2_member", True)
    assert str(found) == "an LVM2_member signature whose checksum is wrong"


def test_two_file_systems_at_once_are_several(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    patch(image, {**signs.xfs(SIZE), **signs.btrfs(SIZE)})

    found = signatures(str(image))

    assert found == Signatures(several=True)
    assert str(found) == "several signatures at once"


def test_a_table_beside_a_file_system_is_told_with_it() -> None:
    found = Signatures(type="ext4", usage="filesystem", table="dos")

    assert str(found) == "an ext4 file system and a dos partition table"


def test_a_device_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        signatures(str(tmp_path / "missing"))


def test_something_that_is_no_device_is_unreadable_and_not_empty(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="libblkid could not look at the device"):
        signatures(str(tmp_path))


def test_without_the_library_nothing_is_proven(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"libmissing\.so is needed to tell what is on a device"):
        signatures(str(an_image(tmp_path)), library="libmissing.so")


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(20):
        signatures(str(image))

    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(("word", "expected"), [("xfs", "an"), ("ext4", "an"), ("LVM2_member", "an"), ("gpt", "a")])
def test_a_sentence_reads_well(word: str, expected: str) -> None:
    assert blkid.article(word) == expected
