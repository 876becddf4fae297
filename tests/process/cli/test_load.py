"""`protokube load image`: the command as a user calls it; real hosts get images in the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.command import Call
from protokube.errors import ExitCode
from protokube.local.base.paths import Paths


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path))
    return tmp_path


def test_a_cluster_whose_cloud_does_not_run_is_told_so(call: Call, state: Path) -> None:
    Paths.of("dev").create()
    Paths.of("dev").database.touch()
    answer = call("load", "image", "web.tar", "--timeout", "1s")

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")
    assert "dev does not run: its local cloud has ended\n  hint: protokube start --cluster dev\n" in answer.err
    assert list(Paths.of("dev").images.iterdir()) == []
