"""The name of a member that does not run is read in the very round that starts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent import a_home, a_turn
from clusters.scenario.edges import ShakyDns
from protokube.agent import links
from protokube.agent.names import member_names
from protokube.agent.world import Turn
from protokube.members.start import Start
from protokube.records import Change
from protokube.records.names import make_record


def a_round(turn: Turn) -> Turn:
    """The next one of the same agent."""
    after = Turn(world=turn.world, wanted=turn.wanted, report=type(turn.report)())
    after.homes, after.settled = [a_home(turn)], {"vol-a"}
    after.decisions = {"vol-a": Start(fresh=False)}
    member_names.sync(after)
    return after


@pytest.mark.parametrize("runs", [True, False])
def test_what_was_read_before_counts_only_for_a_member_that_runs(tmp_path: Path, runs: bool) -> None:
    dns = ShakyDns("laptop")
    turn = a_round(a_turn(tmp_path, dns=dns))
    name = turn.homes[0].member.dns_name
    assert turn.named == {name}
    if runs:
        link = tmp_path / links.DIRECTORY.lstrip("/") / "etcd.manifest"
        link.parent.mkdir(parents=True)
        link.symlink_to("/mnt/master-vol-a/manifests/etcd.manifest")
    before = {each.type: each for each in dns.read([name])}
    dns.apply([Change(before=before["A"], after=make_record(name, "A", ["10.9.9.9"], 5), why="somebody else's")])
    a_round(turn)
    assert dns.addresses(name) == (("10.9.9.9",) if runs else ("10.0.0.1",)), "it was read again, and put right"
