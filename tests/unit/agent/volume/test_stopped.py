"""A member is removed only when its etcd is proven to be gone: whatever is in doubt is a wait, with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from builders.agent import a_mounted_volume, a_round
from protokube.agent.volume.stopped import require_gone, require_unused
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd import Status
from protokube.host import Mount

OLD = 0xA1
BUSY = ("etcd (pid 12) has open /mnt/master-vol-a/0.wal",)
SILENT = TryLater("etcd-a did not answer")
MOUNT = Mount(number=(8, 16), point=Path("/mnt/master-vol-a"), type="ext4", options=frozenset())


class Disks:
    def __init__(self, users: Sequence[str] | TryLater) -> None:
        self.users = users

    def used_by(self, number: tuple[int, int]) -> Sequence[str]:
        assert number == MOUNT.number
        if isinstance(self.users, TryLater):
            raise self.users
        return self.users


class Etcd:
    def __init__(self, answer: int | ProtokubeError) -> None:
        self.answer = answer

    def status(self, endpoint: str) -> Status:
        assert endpoint == "etcd-a"
        if isinstance(self.answer, ProtokubeError):
            raise self.answer
        return Status(
            cluster_id=1, member_id=self.answer, leader=2, revision=1, raft_term=1, raft_index=1, applied_index=1,
            db_size=1, version="3.5.21", learner=False,
        )  # fmt: skip


def require(users: Sequence[str] | TryLater, answer: int | ProtokubeError, **home: Any) -> None:
    round_ = a_round(Path("/nowhere"), disks=Disks(users), etcd={"main": Etcd(answer)})
    require_gone(round_, a_mounted_volume(round_, **{"mount": MOUNT, **home}), OLD)


def test_an_etcd_that_nothing_is_seen_of_is_gone() -> None:
    require((), SILENT)


@pytest.mark.parametrize(
    ("users", "answer"),
    [
        each
        for each in product(((), BUSY, TryLater("processes are hidden")), (SILENT, Refused("no certificate"), OLD, 7))
        if each != ((), SILENT)
    ],
)
def test_any_other_answer_is_a_wait(users: Sequence[str] | TryLater, answer: int | ProtokubeError) -> None:
    with pytest.raises(TryLater):
        require(users, answer)


def test_the_wait_says_what_was_seen() -> None:
    for users, answer, why in (
        (BUSY, SILENT, r"still in use, so its etcd may run: etcd \(pid 12\) has open"),
        ((), OLD, "the old id a1 still answers as etcd-a"),
        ((), 7, "member 7 answers as etcd-a, whose listed id is a1"),
        ((), Refused("no certificate"), "cannot be asked for its id: no certificate"),
    ):
        with pytest.raises(TryLater, match=why):
            require(users, answer)


def test_a_volume_whose_device_is_not_known_proves_nothing() -> None:
    with pytest.raises(TryLater, match="which device"):
        require((), SILENT, mount=None)
    round_ = a_round(Path("/nowhere"))
    with pytest.raises(TryLater):
        require_unused(round_, replace(a_mounted_volume(round_), mount=None))
