"""The folder of manifests, with real files: which are manifests, which are read again, and when to list again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.hosts import a_pod
from protokube.local.pods.manifestdir import ManifestDir
from protokube.local.pods.plan import Reading


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "manifests"


@pytest.fixture
def manifests(folder: Path) -> Iterator[ManifestDir]:
    made = ManifestDir(folder)
    made.look()
    yield made
    os.close(made.handle)


def text(name: str = "a") -> str:
    return json.dumps(a_pod(name))


def only(readings: object) -> Reading:
    assert isinstance(readings, list)
    (reading,) = readings
    assert isinstance(reading, Reading)
    return reading


def test_a_file_that_somebody_writes_is_left_until_it_is_closed(manifests: ManifestDir, folder: Path) -> None:
    code = "import sys; f = open(sys.argv[1], 'w'); f.write(sys.argv[2]); f.flush(); print(flush=True); input()"
    command = [sys.executable, "-I", "-c", code, str(folder / "a.yaml"), text()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        reading = only(manifests.look())
        assert (reading.pod, reading.problem, manifests.being_written) == (None, "is being written", True)
        writer.communicate(b"\n")
    assert only(manifests.look()).pod is not None
    assert manifests.being_written is False
