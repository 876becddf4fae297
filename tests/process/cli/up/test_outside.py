"""`up --isolated`: the option, the earlier value, and what is possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders.config import completed
from builders.view import FakeCloud
from protokube.cli.up.outside import configure_outside, is_isolated, outside_arguments, summary
from protokube.errors import Refused
from protokube.local.outside.config import in_one_line
from protokube.providers.clients.local import LocalClient

CONFIG = completed(cloud="local", masters=1, kubernetesVersion="1.34.1", name="dev")


@pytest.mark.parametrize(
    ("option", "before", "isolated"),
    [
        (None, None, False),
        (None, True, True),
        (None, False, False),
        (True, False, True),
        (False, True, False),
    ],
)
def test_what_nobody_says_now_is_as_it_was(option: bool | None, before: bool | None, isolated: bool) -> None:
    assert is_isolated(option, before) is isolated


def test_the_daemon_is_told_what_is_the_clusters_own() -> None:
    assert outside_arguments(CONFIG, isolated=True) == {
        "isolated": True, "pods": ["100.96.0.0/11"], "services": ["100.64.0.0/13"], "domains": ["cluster.local"],
    }  # fmt: skip


def test_an_error_fits_into_one_line() -> None:
    assert in_one_line(Refused("no tun", saw="nothing", hint="modprobe tun")) == "no tun (nothing); modprobe tun"


def asked(tmp_path: Path, option: bool | None, **answers: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with FakeCloud(tmp_path / "admin.sock", answers) as cloud:
        state = configure_outside(LocalClient(cloud.path), CONFIG, option)
        return state, [each for each in cloud.asked if each["call"] == "set_outside"]


def test_a_cluster_that_was_isolated_stays_so_and_nobody_is_warned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = {"isolated": True, "reached": False, "why": "it was asked for"}
    outcome, (call,) = asked(tmp_path, None, about={"outside": state}, set_outside=state)
    assert outcome == state
    assert call["isolated"] is True
    assert summary(outcome) == "hosts are isolated"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("option", "warned"), [(True, False), (False, True), (None, True)])
def test_a_daemon_of_a_former_version_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: bool | None, warned: bool
) -> None:
    outcome, calls = asked(tmp_path, option, about={"pid": 1})
    assert (outcome["reached"], calls) == (False, [])
    assert ("older version" in capsys.readouterr().err) is warned
