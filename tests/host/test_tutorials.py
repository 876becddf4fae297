"""The tutorials, typed as they stand: every command of a page in its order, in one shell session after the other."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from builders.command import environment

PAGES = Path(__file__).resolve().parents[2] / "docs/tutorials"
BLOCK = re.compile(r'^```(?P<kind>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```', re.MULTILINE | re.DOTALL)


def steps(page: Path) -> list[tuple[str, str]]:
    """Files to write, by name, and commands to run, which have no name."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.finditer(page.read_text()):
        if block["title"]:
            found.append((block["title"], block["text"]))
        elif block["kind"] == "console":
            found += [("", line.removeprefix("$ ")) for line in block["text"].splitlines() if line.startswith("$ ")]
    return found


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment with `protokube` on the PATH, and a folder of its own for clusters."""
    launcher = tmp_path / "bin/protokube"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m protokube "$@"\n')
    launcher.chmod(0o755)
    return environment(PATH=f"{launcher.parent}:{os.environ['PATH']}", PROTOKUBE_STATE=str(tmp_path / "state"))


@pytest.mark.parametrize("name", ["try-it", "break-it"])
def test_every_command_of_a_tutorial_works_as_it_stands(name: str, shell: dict[str, str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    todo = steps(PAGES / f"{name}.md")
    assert len(todo) > 5
    try:
        for file, text in todo:
            if file:
                (work / file).write_text(text)
                continue
            ran = subprocess.run(
                ["bash", "-c", text], cwd=work, env=shell, capture_output=True, text=True, timeout=150, check=False
            )
            assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"
    finally:
        subprocess.run(["bash", "-c", "protokube down --all --yes"], env=shell, check=True)
    assert not any((tmp_path / "state").iterdir())
