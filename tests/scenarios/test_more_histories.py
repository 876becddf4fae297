"""The other half of the random histories: see `test_histories`."""

from __future__ import annotations

import os

import pytest

from clusters.scenario.histories import run_histories

pytestmark = pytest.mark.usefixtures("unmeasured")

EACH = int(os.environ.get("PROTOKUBE_HISTORIES", "250"))


@pytest.mark.parametrize("part", range(10))
def test_whatever_happens_nothing_is_lost_and_the_cluster_heals(part: int) -> None:
    run_histories(range(EACH + part * EACH // 10, EACH + (part + 1) * EACH // 10))
