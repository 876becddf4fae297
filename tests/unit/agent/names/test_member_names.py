"""The name of a member that does not run is read in the very round that starts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent import a_mounted_volume, a_round
from clusters.scenario.edges import ShakyDns
from protokube.agent import links
from protokube.agent.names import member_names
from protokube.agent.round import Round
from protokube.members.start_values import Start
from protokube.records import Change
from protokube.records.names import make_record


def next_round(round_: Round) -> Round:
    """The next one of the same agent."""
    after = Round(edges=round_.edges, wanted=round_.wanted, report=type(round_.report)())
    after.mounted, after.settled = [a_mounted_volume(round_)], {"vol-a"}
    after.decisions = {"vol-a": Start(fresh=False)}
    member_names.sync(after)
    return after


@pytest.mark.parametrize("runs", [True, False])
def test_what_was_read_before_counts_only_for_a_member_that_runs(tmp_path: Path, runs: bool) -> None:
    dns = ShakyDns("laptop")
    round_ = next_round(a_round(tmp_path, dns=dns))
    name = round_.mounted[0].member.dns_name
    assert round_.named == {name}
    if runs:
        link = tmp_path / links.DIRECTORY.lstrip("/") / "etcd.manifest"
        link.parent.mkdir(parents=True)
        link.symlink_to("/mnt/master-vol-a/manifests/etcd.manifest")
    before = {each.type: each for each in dns.read([name])}
    dns.apply([Change(before=before["A"], after=make_record(name, "A", ["10.9.9.9"], 5), why="somebody else's")])
    next_round(round_)
    assert dns.addresses(name) == (("10.9.9.9",) if runs else ("10.0.0.1",)), "it was read again, and put right"
