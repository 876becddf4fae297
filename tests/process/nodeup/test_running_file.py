"""How a process learns which single file it was started from."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import protokube

PRINTED = """
from protokube.nodeup.selfinstall import running_file, version_of
found = running_file()
print(version_of(found) if found else None)
"""


def run(*words: str, folder: Path) -> str:
    env = {"PYTHONPATH": str(Path(protokube.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, text=True, capture_output=True, check=True
    ).stdout


def test_a_single_file_knows_itself_also_by_a_relative_path_and_through_a_link(tmp_path: Path) -> None:
    file = tmp_path / "protokube.pyz"
    with file.open("wb") as whole:
        whole.write(b"#!/usr/bin/env python3\n")
        with ZipFile(whole, "w") as box:
            box.writestr("__main__.py", PRINTED)
    (tmp_path / "link").symlink_to(file)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()

    for words in (str(file), "protokube.pyz", "link"):
        text = run(words, folder=tmp_path)
        assert f"sha256='{sha256}', source='{file}'" in text


def test_an_installed_package_is_no_single_file(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PRINTED)

    assert run("script.py", folder=tmp_path) == "None\n"
