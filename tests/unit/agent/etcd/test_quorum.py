"""What a round asks of an etcd that has no quorum, or that only starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent import a_round
from protokube.agent.etcd import quorum
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.errors import TryLater


class Starting:
    """The far side: members that accept a connection and do not answer, until they do."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ready = False

    def status(self, name: str) -> Starting:
        self.asked.append(name)
        if not self.ready:
            raise TryLater("no answer within 2 s")
        return self

    leader = 1

    def members(self) -> list[str]:
        return ["all"]


@pytest.fixture
def etcd() -> Starting:
    return Starting()


@pytest.fixture
def round_(tmp_path: Path, etcd: Starting) -> Round:
    made = a_round(tmp_path)
    made.edges.etcd = {made.wanted.etcd[0].key: etcd}  # type: ignore[dict-item]
    return made


def test_members_that_do_not_answer_cost_a_round_one_timeout_each(round_: Round, etcd: Starting) -> None:
    (cluster, *_) = round_.wanted.etcd
    for _ in range(3):
        with pytest.raises(TryLater, match="knows a leader"):
            quorum.members(round_, cluster)

    assert etcd.asked == [each.name for each in cluster.members]


def test_the_next_round_asks_again(round_: Round, etcd: Starting) -> None:
    (cluster, *_) = round_.wanted.etcd
    with pytest.raises(TryLater):
        quorum.members(round_, cluster)
    etcd.ready = True

    again = Round(edges=round_.edges, wanted=round_.wanted, report=Report())
    assert list(map(str, quorum.members(again, cluster))) == ["all"]
