"""Which programs of this machine a local cloud lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.local.base import tools


def test_missing_tools_are_told_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tools.missing_tools() == []
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = dict(tools.missing_tools())
    assert missing.get("nsenter") == "util-linux"  # it lies in /usr/bin, which no longer counts
    assert set(missing) <= {program for program, _ in tools.TOOLS}
