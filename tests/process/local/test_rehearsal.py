"""A rehearsal that cannot start says why in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from protokube.errors import Refused
from protokube.local import rehearsal


def test_a_machine_on_which_nothing_can_be_rehearsed_says_so_in_one_sentence(tmp_path: Path) -> None:
    """Without root there is no namespace, and with an empty PATH no `ip`."""
    command = [sys.executable, "-m", rehearsal.__name__, str(tmp_path / "data"), "/nowhere/etcd"]
    ran = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/nowhere"})

    assert ran.returncode == 1
    assert ran.stderr.startswith("no network namespace can be made for the copy: ")
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_program_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(Refused, match="setpriv cannot be started"):
        rehearsal._run(Path("/nowhere/etcd"), tmp_path / "data")
