"""Stages that clean up behind them, and are asked at the end whether everything that must hold still does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from clusters.scenario.checks import Watch
from clusters.scenario.cluster import Stage
from clusters.scenario.host import tmpfs


@pytest.fixture
def make_stage() -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    with tmpfs() as folder:

        def make(**options: object) -> Stage:
            made.append(Stage(folder / str(len(made)), **options))  # type: ignore[arg-type]
            return made[-1]

        yield make
        for stage in made:
            Watch(stage).after_event()
            bugs = [note for host in stage.hosts.values() if host.round_ for note in host.round_.report.bugs]
            assert bugs == []


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    """Three volumes, and no machine yet."""
    return make_stage()


@pytest.fixture
def formed(stage: Stage) -> Stage:
    """Three masters that have come up, with a hundred writes of users."""
    stage.boot_all()
    stage.until(stage.healthy)
    stage.run(10)
    assert all(stage.write() for _ in range(100))
    return stage
