"""A first `up` that was killed refuses neither the next `up`, with whatever options, nor `down`.

More moments, at random: `make soak SOAK=interrupted`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from clusters.interrupted import OPTIONS, command_alone, everything, goes_away, goes_on, interrupted_up, with_daemon
from clusters.real import RealCluster, until
from protokube.members.generation import FORMED


def test_killed_after_its_files_were_written_it_is_completed() -> None:
    with RealCluster() as cluster:
        assert interrupted_up(cluster, "state in", 0.0, command_alone, "--masters", "1")

        goes_on(cluster)

        assert [each["group"] for each in cluster.hosts()] == ["master-a"], "what is not given stays as it was"


def test_killed_with_its_daemon_before_any_disk_is_formatted_the_next_one_may_ask_for_something_else() -> None:
    with RealCluster() as cluster:
        assert interrupted_up(cluster, "the local cloud", 0.02, with_daemon)

        goes_on(cluster, "--masters", "1", "--events")

        assert {each["etcd_cluster"] for each in cluster.admin.call("volumes")} == {"main", "events"}
        assert len(cluster.hosts()) == 1


def test_killed_while_its_members_form_it_keeps_their_disks_whatever_the_next_one_asks_for() -> None:
    with RealCluster() as cluster:
        assert interrupted_up(cluster, "3 hosts", 0.0, command_alone)
        volumes = until(lambda: formed(cluster), "its members form without the command")

        refused = cluster.run("up", "--cluster", cluster.name, *OPTIONS, "--masters", "1")

        assert refused.code == 4
        assert "exists already, with a different configuration" in refused.err
        assert formed(cluster) == volumes
        goes_on(cluster)


def formed(cluster: RealCluster) -> list[str]:
    """The volumes, once all of them are formed."""
    with closing(sqlite3.connect(f"file:{cluster.paths.database}?mode=ro", uri=True)) as database:
        found = database.execute("SELECT id, mark FROM volumes ORDER BY id").fetchall()
    return [volume for volume, _ in found] if {mark for _, mark in found} == {FORMED} else []


@pytest.mark.parametrize(("step", "delay"), [("etcd ", 0.1), ("3 hosts", 0.3)])
def test_killed_as_by_a_power_loss_nothing_of_it_stays_after_a_down(step: str, delay: float) -> None:
    with RealCluster() as cluster:
        assert interrupted_up(cluster, step, delay, everything)

        goes_away(cluster)
