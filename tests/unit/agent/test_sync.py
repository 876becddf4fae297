"""The round itself: its order, and that no step can keep the others from their work."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pytest

from clusters.scenario.cluster import Stage
from clusters.scenario.host import tmpfs
from protokube.agent.sync import ROUND
from protokube.errors import Refused, TryLater


@pytest.fixture
def stage() -> Iterator[Stage]:
    with tmpfs() as folder:
        yield Stage(folder)


class Bad:
    """Certificates that fail in one way."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def sync(self, names: Sequence[str]) -> Sequence[str]:
        raise self.error

    def sync_shared(self) -> Sequence[str]:
        raise self.error

    def give(self, component: str, names: Sequence[str]) -> Sequence[str]:
        raise self.error


def test_the_fence_is_first_the_kubelet_follows_what_it_starts_and_a_revision_is_judged_last() -> None:
    names = [name for name, _ in ROUND]
    assert (names[0], names[-2:]) == ("fence", ["kubelet", "revision"])
    assert names.index("volumes") < names.index("names") < names.index("etcd") < names.index("api")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (TryLater("no answer"), "keys waits: no answer"),
        (Refused("no right"), "keys NEEDS A PERSON: no right"),
        (OSError(28, "No space left on device", "/srv/x"), "keys waits: No space left on device: /srv/x"),
        (ValueError("a bug"), "keys BROKEN: ValueError: a bug"),
    ],
)
def test_a_step_that_fails_says_so_and_the_next_ones_have_their_turn(
    stage: Stage, error: Exception, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    host = stage.boot()
    host.edges.keys = Bad(error)
    round_ = stage.round(host)
    assert round_ is not None
    assert says in round_.report.sentence()
    assert "volumes main/a: attached vol-00000001" in round_.report.sentence()
    assert ("please report it" in caplog.text) == isinstance(error, ValueError)
    assert all(record.levelno >= logging.ERROR for record in caplog.records)
