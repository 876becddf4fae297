"""Which cluster a command is about, how that is completed in a shell, and who may look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.command import Call
from builders.view import ShortFolder, a_view, write_state
from protokube.errors import ExitCode

COMMANDS = (
    ("status",),
    ("explain", "member", "a"),
    ("etcd", "members"),
    ("etcd", "adopt", "vol-1"),
    ("drill", "kill-master"),
)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_answers_a_broken_state_with_a_traceback(call: Call, state: Path, command: tuple[str, ...]) -> None:
    paths = write_state(state, a_view(), "one")
    paths.database.write_bytes(b"no database" * 1000)
    (paths.host("master-0") / "run/protokube/status.json").write_bytes(b"\xff\xfe{")
    (paths.store / "one/etcd/main/generation.json").write_bytes(b"\0" * 10)
    answer = call(*command)

    assert answer.code in (ExitCode.TRY_LATER, ExitCode.INVALID, ExitCode.REFUSED)
    assert "Traceback" not in answer.err
    assert "a bug in protokube" not in answer.err
