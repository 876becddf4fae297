"""Every kind of volumes, each in a small world of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from builders.volumes import a_volume
from conformance.volumes.worlds import FileWorld, FloatingWorld, LocalWorld, MemoryWorld, World

FLOATING = ("memory", "local")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def make_floating(kind: str, folder: Path, stack: ExitStack) -> FloatingWorld:
    return MemoryWorld() if kind == "memory" else stack.enter_context(LocalWorld(folder / "dev"))


@pytest.fixture(params=FLOATING)
def floating(request: pytest.FixtureRequest, tmp_path: Path, stack: ExitStack) -> FloatingWorld:
    """Volumes that move from machine to machine."""
    return make_floating(request.param, tmp_path, stack)


@pytest.fixture
def other_cluster(floating: FloatingWorld, tmp_path: Path, stack: ExitStack) -> FloatingWorld:
    """Of the same kind, and with a volume whose id does not exist in `floating`."""
    if isinstance(floating, MemoryWorld):
        return MemoryWorld(a_volume("vol-of-another"))
    other = make_floating("local", tmp_path / "other", stack)
    other.one_volume()
    return other


@pytest.fixture(params=(*FLOATING, "file"))
def world(request: pytest.FixtureRequest, tmp_path: Path, stack: ExitStack) -> World:
    """Two machines and three volumes; `mine` holds the first, or can."""
    return FileWorld(tmp_path) if request.param == "file" else make_floating(request.param, tmp_path, stack).settled()
