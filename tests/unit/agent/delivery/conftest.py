"""A master for which another revision was put in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.revisions import CLUSTER
from clusters.delivery import TWO, Bench
from protokube.launch.revisions import put_in_force


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Bench:
    """A master on 1, where 2 was put in force; all the others are well."""
    made = Bench(tmp_path, request.node.name, TWO)
    put_in_force(made.store, CLUSTER, TWO, running=True)
    return made
