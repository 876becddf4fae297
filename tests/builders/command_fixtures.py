"""The command for tests of single commands, with nothing taken from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.command import Answer, Call, process
from protokube.cli.main import run


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """In this process; with something on standard input, as a process of its own, which has a real one."""
    monkeypatch.delenv("PROTOKUBE_STORE", raising=False)
    monkeypatch.delenv("PROTOKUBE_DEBUG", raising=False)

    def answer(*arguments: str, stdin: bytes = b"") -> Answer:
        if stdin:
            return process(*arguments, stdin=stdin)
        capsys.readouterr()
        code = run(list(arguments))
        output = capsys.readouterr()
        return Answer(code, output.out, output.err)

    return answer


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which is where we are: names of files in messages are short."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
