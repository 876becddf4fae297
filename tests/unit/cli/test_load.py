"""`protokube load image`: the command as a user calls it; real hosts get images in the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.command import Call
from protokube.cli.load import failure, lines, tree
from protokube.errors import ExitCode
from protokube.local.loading.delivery import Outcome
from protokube.local.loading.image_store import Kept
from protokube.local.loading.load import Found

FOUND = Found(
    argument="web.tar", file=Path("web.tar"), tool="", size=7, kept=Kept("abc", {"docker.io/library/web:1": "web:1"})
)
OUTCOMES = [Outcome("a-1", "imported"), Outcome("b-1", "unchanged"), Outcome("c-1", "gone")]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path))
    return tmp_path


def test_the_result_names_each_image_and_each_host() -> None:
    result = tree("dev", [FOUND], {"docker.io/library/web:1": "replaced"}, OUTCOMES)

    assert result["images"] == [
        {"name": "docker.io/library/web:1", "from": "web.tar", "exportedBy": None, "change": "replaced",
         "archive": "sha256:abc", "bytes": 7}
    ]  # fmt: skip
    assert lines(result) == [
        "IMAGE                    STATE     FROM",
        "docker.io/library/web:1  replaced  web.tar",
        "",
        "HOST  STATE",
        "a-1   imported",
        "b-1   has them already",
        "c-1   died; its replacement imports them",
    ]


def test_a_host_that_died_is_no_failure_and_one_that_failed_is_named_with_the_reason() -> None:
    assert failure(OUTCOMES) is None
    error = failure([*OUTCOMES, Outcome("d-1", "failed", "its containerd does not answer")])
    assert error is not None
    assert (error.message, error.saw) == ("not on every host: d-1", "d-1: its containerd does not answer")
    assert error.exit_code == ExitCode.TRY_LATER
    refused = failure([Outcome("d-1", "failed", "x"), Outcome("e-1", "refused", "ctr: no processor for media-type")])
    assert refused is not None
    assert (refused.exit_code, refused.saw) == (ExitCode.REFUSED, "d-1: x; e-1: ctr: no processor for media-type")


def test_without_a_cluster_it_says_how_to_get_one(call: Call, state: Path) -> None:
    answer = call("load", "image", "web.tar")

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert answer.err == "error: there is no local cluster on this machine\n  hint: protokube up\n"


def test_help_shows_how_it_is_called(call: Call) -> None:
    assert "protokube load image web.tar" in call("load", "--help").out
    assert call("load", "image", "-h").out.startswith("Usage: protokube load image [OPTIONS] FILE|NAME...\n")
    assert "Missing argument 'FILE|NAME...'" in call("load", "image").err
