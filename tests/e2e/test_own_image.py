"""The image that `get image` makes: it runs where there is nothing else, as nobody, and nothing can be written."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from builders.command import process
from protokube import __version__
from protokube.images.pythonimage import MODULES, interpreter

NOBODY = "65534:65534"
UNCOMPILED = f"""
import os, sys
sys.path.insert(0, {MODULES!r})
import protokube.controllers.dns.assemble, protokube.controllers.dns.controller, protokube.providers.dns.route53
import botocore.session
from protokube.cli import main
from protokube.cli.dns import controller
files = [each.__cached__ for each in list(sys.modules.values()) if getattr(each, "__cached__", None)]
print(len(files) > 100, [file for file in files if not os.path.exists(file)])
"""


def unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    subprocess.run(["tar", "--extract", f"--file={archive}", f"--directory={folder}"], check=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a container of the image would see, but for /proc and /dev."""
    folder = tmp_path_factory.mktemp("image")
    made = process("get", "image", str(folder / "ours.tar"))
    assert made.code == 0, made.err
    unpack(folder / "ours.tar", folder)
    (manifest,) = json.loads((folder / "manifest.json").read_text())
    (layer,) = manifest["Layers"]
    unpack(folder / layer, folder / "root")
    for place in (folder, *folder.parents[:2]):
        place.chmod(0o755)  # nobody has to come by
    return folder / "root"


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["chroot", f"--userspec={NOBODY}", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, timeout=60)


def test_it_is_this_version_of_ourselves(root: Path) -> None:
    ran = run(root, "/usr/local/bin/protokube", "--version")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert __version__ in ran.stdout


@pytest.mark.parametrize("provider", [("--dns=aws-route53",), ("--dns=rfc2136", "--server=127.0.0.1", "--zone=x.test")])
def test_it_has_what_every_provider_needs_and_says_in_words_what_it_is_not_told(
    root: Path, provider: tuple[str, ...]
) -> None:
    ran = run(root, "/usr/local/bin/protokube", "dns-controller", "--once", "--dry-run", *provider)
    assert (ran.returncode != 0, ran.stdout) == (True, "")
    assert ran.stderr.startswith("error: ")
    assert "Traceback" not in ran.stderr
    assert "install" not in ran.stderr


def test_every_module_of_it_is_compiled(root: Path) -> None:
    ran = run(root, str(interpreter()), "-I", "-c", UNCOMPILED)
    assert (ran.stdout, ran.stderr) == ("True []\n", "")
