"""What tests of this folder share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def only_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, and has but what a shell script needs."""
    folder = tmp_path / "path"
    folder.mkdir()
    for needed in ("cat", "sh"):
        (folder / needed).symlink_to(shutil.which(needed) or "")
    monkeypatch.setenv("PATH", str(folder))
    return folder
