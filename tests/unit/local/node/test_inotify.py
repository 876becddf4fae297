"""A shortage of inotify instances is reported before hosts with a real kubelet start."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from protokube.local.node import inotify
from protokube.local.node.inotify import PER_HOST, judge, shortage, used

NUMBERS = st.integers(min_value=0, max_value=10_000)


@given(NUMBERS, NUMBERS, st.integers(min_value=1, max_value=9))
def test_who_has_enough_is_told_nothing_and_who_has_not_how_to_get_more_than_now(
    allowed: int, taken: int, hosts: int
) -> None:
    problem = judge(allowed, taken, hosts)
    assert (problem is None) == (allowed - taken >= hosts * PER_HOST)
    if problem:
        assert f"{allowed} inotify instances, and {taken} are in use" in problem.message
        wanted = int(problem.hint.partition("=")[2].partition(",")[0])
        assert wanted > allowed
        assert wanted >= inotify.ENOUGH


def test_instances_of_every_process_of_the_user_are_counted_and_other_files_are_not(tmp_path: Path) -> None:
    for process, targets in {
        "1": ["anon_inode:inotify", "/dev/null"],
        "22": ["anon_inode:inotify"] * 2,
        "self": [],
    }.items():
        folder = tmp_path / process / "fd"
        folder.mkdir(parents=True)
        for number, target in enumerate(targets):
            (folder / str(number)).symlink_to(target)
    (tmp_path / "33").mkdir()  # ended: its folder is gone

    assert used(tmp_path) == 3
    limit = tmp_path / "limit"
    limit.write_text("60\n")
    assert shortage(3, tmp_path, limit)
    limit.write_text("63\n")
    assert shortage(3, tmp_path, limit) is None
    assert shortage(3, tmp_path, tmp_path / "nothing") is None


def test_the_kernel_shows_an_instance_as_we_look_for_it() -> None:
    handle = ctypes.CDLL(None, use_errno=True).inotify_init1(0)
    assert handle >= 0, os.strerror(ctypes.get_errno())
    try:
        assert str(Path(f"/proc/self/fd/{handle}").readlink()) == inotify.INSTANCE
    finally:
        os.close(handle)
