"""The same worlds as those of volumes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from conformance.volumes.conftest import FLOATING, make_floating
from conformance.volumes.worlds import FileWorld, FloatingWorld, World


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(params=FLOATING)
def floating(request: pytest.FixtureRequest, tmp_path: Path, stack: ExitStack) -> FloatingWorld:
    return make_floating(request.param, tmp_path, stack)


@pytest.fixture(params=(*FLOATING, "file"))
def world(request: pytest.FixtureRequest, tmp_path: Path, stack: ExitStack) -> World:
    return FileWorld(tmp_path) if request.param == "file" else make_floating(request.param, tmp_path, stack).settled()
