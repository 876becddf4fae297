"""How slirp4netns is found and called."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.errors import Refused
from protokube.local.outside import slirp
from protokube.local.outside.slirp import Program


def test_it_is_kept_from_the_users_loopback_and_in_a_sandbox_of_its_own() -> None:
    words = slirp.command(Program(path="/x/slirp4netns"), "pk-1", ready=7, leave=8)
    at = words.index("/x/slirp4netns")
    assert words[at - 4 : at] == [words[at - 4], "--mount", "--propagation=slave", "--"]
    assert words[at - 4].endswith("/unshare")
    for option in ("--disable-host-loopback", "--disable-dns", "--enable-sandbox", "--ready-fd=7", "--exit-fd=8"):
        assert option in words[at:]
    assert words[-2:] == ["/run/netns/pk-1", "tap0"]


def test_libraries_are_named_only_where_the_machine_lacks_some() -> None:
    assert "LD_LIBRARY_PATH" not in Program(path="x").environment
    assert Program(path="x", libraries=("/a", "/b")).environment["LD_LIBRARY_PATH"] == "/a:/b"


def test_a_machine_without_tun_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="this machine has no ") as refused:
        slirp.obtain(tmp_path, tmp_path / "net" / "tun")
    assert "modprobe tun" in refused.value.hint
    assert "mknod" in refused.value.hint


def test_a_device_that_cannot_be_opened_is_told_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be used") as refused:
        slirp.need_tun(tmp_path)
    assert refused.value.saw == "Is a directory"
