"""What the tests on this machine share: the single-file build, and an empty machine to run it on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from host.emptymachine import PYZ, REPOSITORY, EmptyMachine, debian_root, with_small_payload


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The single-file build of the code as it is now, for this kind of machine."""
    return single_file(tmp_path_factory.mktemp("dist") / "protokube.pyz")


@pytest.fixture(scope="session")
def pyz_for_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for every kind of machine."""
    return single_file(tmp_path_factory.mktemp("dist") / "protokube-all.pyz", "--for=all")


def single_file(output: Path, *options: str) -> Path:
    command = [sys.executable, str(REPOSITORY / "scripts" / "pyz.py"), f"--output={output}", *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return output


@pytest.fixture(scope="session")
def small_pyz(pyz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same file with a protokube of one module: to unpack and compile all of it takes seconds each time."""
    return with_small_payload(pyz, tmp_path_factory.mktemp("small") / pyz.name)


@pytest.fixture(scope="session")
def empty_root() -> Path:
    return debian_root(REPOSITORY / ".cache" / "empty-machine")


@pytest.fixture
def machine(empty_root: Path, pyz: Path, tmp_path: Path) -> EmptyMachine:
    """A machine nobody has used yet, with the whole protokube."""
    return EmptyMachine.boot(empty_root, tmp_path / "machine", pyz)


@pytest.fixture(scope="session")
def whole_machine(empty_root: Path, pyz: Path, tmp_path_factory: pytest.TempPathFactory) -> EmptyMachine:
    """A machine on which the whole protokube was unpacked once, for tests that only start it again."""
    machine = EmptyMachine.boot(empty_root, tmp_path_factory.mktemp("whole") / "machine", pyz)
    ran = machine.run(PYZ, "--version", HOME="/root")
    assert ran.returncode == 0, ran.stderr
    return machine


@pytest.fixture
def new_machine(empty_root: Path, small_pyz: Path, tmp_path: Path) -> EmptyMachine:
    """A machine nobody has used yet."""
    return EmptyMachine.boot(empty_root, tmp_path / "machine", small_pyz)


@pytest.fixture(scope="session")
def first_start(empty_root: Path, small_pyz: Path, tmp_path_factory: pytest.TempPathFactory) -> EmptyMachine:
    """A machine on which protokube was started once; tests get copies of it."""
    machine = EmptyMachine.boot(empty_root, tmp_path_factory.mktemp("used") / "machine", small_pyz)
    ran = machine.run(PYZ, "--version", HOME="/root")
    assert ran.returncode == 0, ran.stderr
    return machine


@pytest.fixture
def used_machine(first_start: EmptyMachine, tmp_path: Path) -> EmptyMachine:
    """A machine on which root has started protokube before."""
    state = tmp_path / "machine"
    shutil.copytree(first_start.state, state)
    return EmptyMachine(first_start.root, state, first_start.pyz)
