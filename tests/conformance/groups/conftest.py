"""Every kind of instance groups, each in a cloud of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.groups.worlds import GroupWorld, LocalGroupWorld, MemoryGroupWorld


@pytest.fixture(params=("memory", "local"))
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GroupWorld]:
    if request.param == "memory":
        yield MemoryGroupWorld()
    else:
        with LocalGroupWorld(tmp_path / "dev") as world:
            yield world
