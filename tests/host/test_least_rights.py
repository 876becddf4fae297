"""A user other than root reads no key of a local cluster and writes no name in it.

One real cluster, with a host that is no master; its parent folder is open to everybody, as /var/lib is. A process of
user 65534 tries every file, folder and socket of it, and looks for its secrets all over the machine.
"""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dns.query
import dns.rcode
import dns.tsig
import dns.update
import pytest

from builders.keys import differences, missing
from clusters.real import RealCluster, until
from clusters.stranger import Verdict, all_secrets, an_open_file, everything, just_now, try_everything, update_key
from protokube.local.bringup import CACHE, dns_address
from protokube.local.cloud.rights import database_files


@dataclass(frozen=True)
class Tried:
    cluster: RealCluster
    verdict: Verdict
    control: Path
    """Open to everybody, with a secret in it: the stranger has to find it."""


@pytest.fixture(scope="module")
def tried() -> Iterator[Tried]:
    since = just_now()
    with tempfile.TemporaryDirectory(prefix="pkc-", dir="/tmp") as folder:
        state = Path(folder)
        state.chmod(0o755)
        with RealCluster("rights", state) as cluster:
            cluster.up("--masters", "1")
            cluster.admin.call("set_group", name="workers", size=1, template={"master": False})
            until(lambda: len([x for x in cluster.hosts() if x["running"]]) == 2, "a host that is no master")
            control = an_open_file(state, [update_key(cluster)["secret"]])
            elsewhere = (CACHE, Path("/run/netns", cluster.paths.switch), control)
            try:
                yield Tried(cluster, try_everything(cluster, since, *elsewhere), control)
            finally:
                control.unlink()


def test_a_stranger_can_do_nothing_to_any_file_folder_or_socket_of_a_cluster(tried: Tried) -> None:
    assert tried.verdict.tried > 200
    assert tried.verdict.inside(tried.cluster.paths.root) == {}


def test_nothing_had_to_be_closed_afterwards(tried: Tried) -> None:
    assert "could be read by others" not in tried.cluster.paths.log.read_text()


def test_a_stranger_finds_no_secret_of_a_cluster_anywhere_on_the_machine(tried: Tried) -> None:
    """But the one that was left open for it, so that it is known to look."""
    assert tried.verdict.secrets == [str(tried.control)]
    assert tried.verdict.could[str(tried.control)] == ["read"]


def test_a_stranger_sees_nothing_of_the_processes_of_a_cluster_and_writes_nothing_it_uses(tried: Tried) -> None:
    assert tried.verdict.inside(Path("/proc")) == {}
    changeable = {path for path, done in tried.verdict.could.items() if {"write", "create", "connect"} & {*done}}
    assert changeable == set()


def test_a_stranger_writes_no_name(tried: Tried) -> None:
    assert set(tried.verdict.updates) == {
        f"{how} by {way}" for how in ("unsigned", "another secret", "another key") for way in ("udp", "tcp")
    }
    assert "NOERROR" not in tried.verdict.updates.values()
    assert tried.cluster.answers("stranger.rights") == []


def test_with_the_key_the_same_update_is_accepted(tried: Tried) -> None:
    host, _, port = dns_address(tried.cluster.admin).rpartition(":")
    key = update_key(tried.cluster)
    update = dns.update.UpdateMessage("rights", keyring=dns.tsig.Key(key["name"], key["secret"]))
    update.replace("owner", 5, "A", "192.0.2.1")

    answer = dns.query.tcp(update, host, port=int(port), timeout=30)

    assert answer.rcode() == dns.rcode.NOERROR
    assert tried.cluster.answers("owner.rights") == ["192.0.2.1"]


def test_what_holds_a_secret_is_closed_itself_and_not_only_by_the_folder_around_it(tried: Tried) -> None:
    known = [each.encode() for each in all_secrets(tried.cluster)]
    root = tried.cluster.paths.root
    open_ones = []
    for path, kind in everything(root):
        if not kind & 0o077 or stat.S_ISLNK(kind) or stat.S_ISDIR(kind):
            continue
        if stat.S_ISSOCK(kind) or (stat.S_ISREG(kind) and any(each in Path(path).read_bytes() for each in known)):
            open_ones.append(path)

    assert open_ones == []
    closed = [root, *(root / name for name in ("client", "disks", "hosts", "store")), *root.glob("hosts/*")]
    closed += [each for each in database_files(tried.cluster.paths.database) if each.exists()]
    assert [each for each in closed if each.stat().st_mode & 0o077] == []


def test_a_host_that_is_no_master_finds_no_secret_of_the_store_in_its_root(tried: Tried) -> None:
    worker = next(each["name"] for each in tried.cluster.hosts() if each["group"] == "workers")
    secret = update_key(tried.cluster)["secret"]
    search = ("grep", "-rlsF", "--devices=skip", secret, "/srv", "/etc", "/var", "/run", "/mnt", "/tmp")

    ran = tried.cluster.inside(worker, *search)

    assert (ran.stdout, ran.stderr) == ("", "")


def test_the_page_about_keys_is_right_about_this_cluster(tried: Tried) -> None:
    root, name = tried.cluster.paths.root, tried.cluster.name

    assert differences(root, name, {"always"}) == []
    assert missing(root, name, all_secrets(tried.cluster)) == []
