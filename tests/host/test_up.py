"""`protokube up` on this machine: three healthy members, found by name, and nothing done twice.

Two clusters stand side by side for all tests here: one as it comes, one with a second etcd cluster for events.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builders.command import COMMAND, environment
from builders.secrets import given_away, secrets_of
from clusters.real import RealCluster, until
from fakes.name_servers import debian_environment, debian_program
from protokube.local.drill.writer import as_found, lost
from protokube.members.generation import Generation, decode
from protokube.store.open import open_store


@dataclass(frozen=True)
class SideBySide:
    plain: RealCluster
    events: RealCluster


@pytest.fixture(scope="module")
def both() -> Iterator[SideBySide]:
    """Brought up at the same time, below one folder."""
    with tempfile.TemporaryDirectory(prefix="pkc-", dir="/tmp") as state, ExitStack() as stack:
        names = ("plain", "noted")
        plain, events = (stack.enter_context(RealCluster(name, Path(state))) for name in names)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda told: told[0].up(*told[1:]), [(plain,), (events, "--events")]))
        yield SideBySide(plain, events)


def generation_of(cluster: RealCluster, etcd: str = "main") -> Generation:
    (file,) = (path for path in cluster.paths.store.rglob("*generation*") if etcd in str(path) and path.is_file())
    found = decode(file.read_bytes())
    assert found is not None
    return found


def test_no_secret_of_the_store_is_in_what_the_cloud_keeps_of_a_group(both: SideBySide) -> None:
    for cluster in (both.plain, both.events):
        store = open_store(f"file://{cluster.paths.store}")
        kept = json.dumps([cluster.template(f"master-{short}") for short in "abc"])

        assert f"{cluster.name}/secrets/dns-update-key" in secrets_of(store, cluster.name)
        assert given_away(store, cluster.name, kept) == []


def test_up_ends_with_three_healthy_members_of_one_cluster(both: SideBySide) -> None:
    told = both.plain.until_ready()

    assert told["ready"] is True
    assert told["lacks"] == []
    assert [member["member"] for member in told["members"]] == ["main/a", "main/b", "main/c"]
    assert all(member["healthy"] and not member["learner"] for member in told["members"])
    assert len({member["clusterId"] for member in told["members"]}) == 1
    assert sum(member["leader"] for member in told["members"]) == 1
    assert {member["host"] for member in told["members"]} == {host["name"] for host in told["hosts"]}


def test_creation_is_closed_in_the_store_and_on_every_disk_before_up_says_that_it_is_done(both: SideBySide) -> None:
    volumes = both.plain.admin.call("volumes")

    assert {volume["mark"] for volume in volumes} == {"formed"}
    assert {volume["epoch"] for volume in volumes} == {1}
    generation = generation_of(both.plain)
    assert not generation.open
    assert generation.founders == {volume["member"]: volume["id"] for volume in volumes}


def test_what_is_written_through_one_member_is_read_through_each_other(both: SideBySide) -> None:
    """With the file that `up` says to source, and the etcdctl it names."""
    told = both.plain.told
    endpoints = told["env"]["ETCDCTL_ENDPOINTS"].split(",")
    read = 'for each in $4 $5; do ETCDCTL_ENDPOINTS=$each "$2" get hello; done'
    script = f'. "$1"; ETCDCTL_ENDPOINTS=$3 "$2" put hello world; {read}'

    ran = subprocess.run(
        ["sh", "-ec", script, "sh", told["envFile"], told["etcdctl"], *endpoints],
        capture_output=True, text=True, env=environment(ETCDCTL_COMMAND_TIMEOUT="30s"),
    )  # fmt: skip

    assert ran.stderr == ""
    assert ran.stdout.split() == ["OK", "hello", "world", "hello", "world"]


def test_nobody_reads_without_a_certificate(both: SideBySide) -> None:
    ran = both.plain.etcdctl("get", "hello", "--command-timeout=1s", ETCDCTL_CERT="", ETCDCTL_KEY="")

    assert ran.returncode != 0


def dig(cluster: RealCluster, name: str) -> str:
    server, _, port = cluster.told["dns"].rpartition(":")
    command = [debian_program("bind9-dnsutils", "usr/bin/dig"), "+short", "+time=5", f"@{server}", "-p", port, name]
    return subprocess.run(command, capture_output=True, text=True, env=debian_environment()).stdout.strip()


def test_every_member_is_found_by_its_name_where_its_disk_is(both: SideBySide) -> None:
    addresses = {host["name"]: host["address"] for host in both.plain.hosts()}

    for member in both.plain.status()["members"]:
        assert dig(both.plain, member["dnsName"]) == addresses[member["host"]]
    until(
        lambda: sorted(dig(both.plain, "api.internal.plain").split()) == sorted(addresses.values()),
        "the name of the API leads to every master",
    )


def all_that_is(cluster: RealCluster) -> dict[str, Any]:
    """Everything that a second `up` could have changed; not what changes by itself: the leader, raft marks, reports."""
    told = cluster.until_ready()
    members = [
        {name: each[name] for name in ("member", "host", "volume", "url", "id", "clusterId")}
        for each in told["members"]
    ]
    files = (
        path for path in cluster.paths.store.rglob("*") if path.is_file() and path.parent.name not in ("agents", "raft")
    )
    store = {str(path): path.read_bytes() for path in files if path.parent.name not in ("agents", "raft")}
    environment_file = Path(cluster.told["envFile"]).read_text()
    rounds = {name: agent["members"] for name, agent in cluster.agents().items()}
    inside = {host["name"]: (host["pid"], host["started"]) for host in cluster.hosts()}
    records = cluster.admin.call("records")
    return {
        "members": members, "disks": told["disks"], "store": store, "env": environment_file, "agents": rounds,
        "hosts": inside, "records": records, "daemon": told["daemon"]["pid"],
    }  # fmt: skip


def test_up_a_second_time_changes_nothing_and_says_so(both: SideBySide) -> None:
    before = all_that_is(both.plain)

    said = both.plain.run("up", "--cluster", "plain", "--kubernetes", "none")

    assert said.code == 0
    assert all_that_is(both.plain) == before
    assert "runs already" in said.err
    assert "plain" in said.out


def test_up_without_the_words_of_the_first_time_goes_on_with_what_they_asked_for(both: SideBySide) -> None:
    before, template = all_that_is(both.events), both.events.template("master-a")

    said = both.events.run("up", "--cluster", "noted")

    assert said.code == 0, said.err
    assert all_that_is(both.events) == before
    assert both.events.template("master-a") == template


@pytest.mark.parametrize(
    ("words", "asked"), [(("--masters", "5"), "--masters 5"), (("--events", "--masters", "1"), "--masters 1; --events")]
)
def test_up_with_other_members_than_there_are_is_refused_and_changes_nothing(
    both: SideBySide, words: tuple[str, ...], asked: str
) -> None:
    before, template = all_that_is(both.plain), both.plain.template("master-a")

    said = both.plain.run("up", "--cluster", "plain", *words)

    assert said.code == 4
    assert "plain exists already, with a different configuration" in said.err
    assert "etcd members main/a, main/b, main/c" in said.err
    assert f"want: {asked}\n" in said.err
    assert all_that_is(both.plain) == before
    assert both.plain.template("master-a") == template


def test_a_spec_with_other_members_than_there_are_is_refused_and_changes_nothing(both: SideBySide) -> None:
    before = all_that_is(both.plain)
    spec = both.plain.write_spec(masters=1)
    try:
        said = both.plain.run("up", str(spec))
    finally:
        spec.unlink()

    assert said.code == 2
    assert f"{spec}:1 masters: cannot change on a running cluster, 3 -> 1" in said.err
    assert all_that_is(both.plain) == before


def test_events_have_an_etcd_cluster_of_their_own_with_one_member_on_each_host(both: SideBySide) -> None:
    told = both.events.until_ready()

    held = Counter((disk["member"].split("/")[0], disk["attachedTo"]) for disk in told["disks"])
    hosts = {host["name"] for host in told["hosts"]}
    assert held == {(key, host): 1 for key in ("main", "events") for host in hosts}
    assert len(hosts) == 3
    assert told["ready"] is True
    assert all(member["healthy"] for member in told["members"])
    by_cluster = {
        key: {each["clusterId"] for each in told["members"] if each["member"].startswith(key)}
        for key in ("main/", "events/")
    }
    assert [len(ids) for ids in by_cluster.values()] == [1, 1]
    assert by_cluster["main/"] != by_cluster["events/"]
    assert not generation_of(both.events, "events").open


def test_clusters_side_by_side_have_keys_of_their_own(both: SideBySide) -> None:
    both.plain.client().put("whose", "plain's")
    both.events.client().put("whose", "noted's")

    assert [x.value for x in both.plain.client().read("whose")] == ["plain's"]
    assert [x.value for x in both.events.client().read("whose")] == ["noted's"]


def test_a_host_that_dies_in_one_cluster_is_no_business_of_the_other(both: SideBySide) -> None:
    before = all_that_is(both.plain)
    old = both.events.host_of("b")
    with both.plain.writing() as writer:
        until(lambda: writer.log().acknowledged, "the first write")

        both.events.admin.call("kill_host", host=old)
        until(lambda: both.events.host_of("b") != old, "somebody else holds the disk")
        both.events.until_ready()

        log = writer.stop()

    assert lost(log, as_found(both.plain.client().read(log.prefix))) == ()
    assert log.longest_gap.seconds < 10, "on a busy machine a single write may be late, and no more than that"
    assert all_that_is(both.plain) == before


def test_without_root_it_refuses_in_words_and_leaves_nothing(tmp_path: Path) -> None:
    """In a user namespace that maps us to somebody else: all files can be read, and nothing else may be done."""
    ran = subprocess.run(
        ["unshare", "--user", "--map-user=1000", *COMMAND, "up", "--cluster", "mine"],
        capture_output=True, text=True, env=environment(PROTOKUBE_STATE=str(tmp_path)),
    )  # fmt: skip

    assert ran.returncode == 4
    assert "error: the local cloud needs root" in ran.stderr
    assert "hint: sudo protokube up" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_down_without_root_names_the_command_that_was_typed(tmp_path: Path) -> None:
    ran = subprocess.run(
        ["unshare", "--user", "--map-user=1000", *COMMAND, "down", "--all"],
        capture_output=True, text=True, env=environment(PROTOKUBE_STATE=str(tmp_path)),
    )  # fmt: skip

    assert ran.returncode == 4
    assert "hint: sudo protokube down\n" in ran.stderr


@pytest.mark.parametrize(("tool", "package"), [("mkfs.ext4", "e2fsprogs"), ("losetup", "mount"), ("ip", "iproute2")])
def test_a_missing_tool_is_named_with_its_package_and_nothing_is_left(tmp_path: Path, tool: str, package: str) -> None:
    """Hidden in a mount namespace of its own, under every name it has."""
    hide = 'for each in $(which -a "$1" | xargs -n1 readlink -f | sort -u); do mount --bind /dev/null "$each"; done'
    script = f'{hide}; shift; exec "$@"'
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"

    ran = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", tool, *COMMAND, "up"],
        capture_output=True, text=True, env=environment(PROTOKUBE_STATE=str(tmp_path), PATH=path),
    )  # fmt: skip

    assert ran.returncode == 4
    assert f"lacks {tool}" in ran.stderr
    assert re.search(rf"apt-get install .*\b{package}\b", ran.stderr)
    assert "Traceback" not in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_spec_for_another_cloud_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: far.example.com}\n"
        "spec: {cloud: aws, zones: [us-east-1a]}\n"
    )

    ran = subprocess.run(
        [sys.executable, "-m", "protokube", "up", str(spec), "--kubernetes", "none"],
        capture_output=True, text=True, env=environment(PROTOKUBE_STATE=str(tmp_path / "state")),
    )  # fmt: skip

    assert ran.returncode != 0
    assert "cloud: local" in ran.stderr
    assert not (tmp_path / "state").exists()
