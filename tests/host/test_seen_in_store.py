"""Faults of a real cluster, seen by somebody who has only its store: the same causes as on the spot.

One cluster suffers them one after the other, and each is mended before the next. `status` and `explain` run where the
store is the only thing of the cluster that can be seen.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clusters.broken_disks import fill_disk_of
from clusters.far_reader import FarReader
from clusters.real import RealCluster, until
from protokube.store import layout
from soak.chaos.faults_cloud import ApiDown, SilentDns
from soak.chaos.faults_hosts import Freeze, Partition
from soak.chaos.faults_images import Clone
from soak.chaos.field import Field, kept, send

SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The cluster, with what breaks it and who looks at it from far away."""

    cluster: RealCluster
    field: Field
    reader: FarReader

    def same(self, cause: str, what: tuple[str, str], said: str = "", *, ready: bool = False) -> None:
        """Both looks name this cause, what agents say is the same word for word, and `explain` has it too."""

        def agree() -> bool:
            here, there = self.cluster.status(), _tree(self.reader)
            if not (re.search(cause, _causes(here)) and re.search(cause, _causes(there))):
                raise ValueError(f"{cause!r}: here {_causes(here)!r}, there {_causes(there)!r}")
            if _words(here) != _words(there):
                raise ValueError(f"here {_words(here)}, there {_words(there)}")
            if here["exitCode"] != there["exitCode"]:
                raise ValueError(f"here {here['exitCode']}, there {there['exitCode']}: {_causes(there)!r}")
            return True

        until(agree, "the reader of the store sees the same cause", SECONDS, every=0.5)
        far = self.reader.status()
        assert re.search(cause, _causes(far)), far
        assert (far["daemon"], far["ready"]) == (None, ready)
        explained = self.reader.run("explain", *what)
        assert explained.code == 0, explained.err
        assert re.search(said or cause, explained.out), explained.out
        if not said:
            assert re.search(cause, self.cluster.run("explain", *what).out), "explain there says what explain here says"

    def far_state(self, host: str) -> str:
        seen = self.reader.look().host(host)
        return seen.state if seen else ""

    def mended(self) -> None:
        self.cluster.until_ready()
        until(lambda: self.reader.look().ready, "the reader of the store sees that it is ready", SECONDS)


def _tree(reader: FarReader) -> dict[str, Any]:
    from protokube.cli.render.tree import view_tree

    return view_tree(reader.look())


def _causes(tree: dict[str, Any]) -> str:
    """Why it is not ready, what is waited for, and what needs a person."""
    notes = [each["text"] for kind in ("waiting", "needsAPerson", "broken") for each in tree[kind]]
    return "\n".join([*tree["lacks"], *notes])


def _words(tree: dict[str, Any]) -> dict[str, list[str]]:
    """What the agents themselves say, without figures that go on counting."""
    return {
        kind: sorted({re.sub(r"\d+ s\b", "… s", each["text"]) for each in tree[kind]})
        for kind in ("needsAPerson", "broken")
    }


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with RealCluster() as cluster:
        cluster.up()
        reader = FarReader(cluster)
        reader.hurry()
        made = Scene(cluster, Field(cluster), reader)
        made.mended()
        yield made


@contextmanager
def fault(scene: Scene, kind: Any, **aim: Any) -> Iterator[None]:
    """One of the chaos runs' faults, undone at the end."""
    one = kind(lasts=0.0, **aim)
    one.apply(scene.field)
    try:
        yield
    finally:
        one.undo(scene.field)
    scene.mended()


@contextmanager
def another_image(scene: Scene, member: str, make: Callable[[Path, int], None]) -> Iterator[str]:
    """A disk of a member whose content somebody replaced while nobody held it; the right one is put back."""
    volume = scene.field.volume(member)["id"]
    with scene.field.powered_off(member) as (image,):
        size = image.stat().st_size
        image.rename(kept(image))
        make(image, size)
        image.chmod(0o600)
    try:
        yield volume
    finally:
        scene.field.put_back(member)
    scene.mended()


def blank(image: Path, size: int) -> None:
    subprocess.run(["truncate", f"--size={size}", image], check=True)


def of_somebody_else(image: Path, size: int) -> None:
    blank(image, size)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "pgdata", image], check=True, capture_output=True)


def test_a_reader_of_the_store_sees_a_cluster_that_is_ready(scene: Scene) -> None:
    far = scene.reader.status()

    assert (far["ready"], far["exitCode"], far["state"]) == (True, 0, "ready")
    assert {each["member"] for each in far["members"] if each["healthy"]} == {"main/a", "main/b", "main/c"}
    listed = scene.reader.run("etcd", "members", "-o", "json")
    assert listed.code == 0, listed.err
    assert scene.reader.run("rollout", "status").code == 0
    assert "revision 1" in scene.reader.run("status").out


def test_the_store_holds_no_secret_of_what_was_published(scene: Scene) -> None:
    store = scene.cluster.paths.store / scene.cluster.name
    published = "".join(each.read_text() for each in (store / "agents").glob("*.json"))
    secret = [each.read_text() for each in (*store.glob("pki/private/**/*.key"), *store.glob("secrets/*"))]

    assert len(published) > 1000
    assert len(secret) > 2
    for each in secret:
        lines = [line for line in each.split() if len(line) > 20]
        assert not [line for line in lines if line in published]


def test_a_frozen_master(scene: Scene) -> None:
    host = scene.cluster.host_of("a")
    with fault(scene, Freeze, member="a"):
        until(lambda: scene.far_state(host) != "live", "its lease ends")
        scene.same(f"etcd-a on {host} is not healthy", ("member", "etcd-a"), "no live lease")


def test_a_master_that_is_cut_off(scene: Scene) -> None:
    host = scene.cluster.host_of("b")
    with fault(scene, Partition, member="b"):
        until(lambda: scene.far_state(host) != "live", "its lease ends")
        scene.same(f"etcd-b on {host} is not healthy", ("member", "etcd-b"), "no live lease")


def test_a_killed_master_without_a_successor(scene: Scene) -> None:
    scene.cluster.admin.call("pause_group")
    try:
        scene.field.kill_host(scene.cluster.host_of("c"))
        volume = scene.field.volume("c")["id"]
        scene.same(f"{volume} of etcd-c is attached to nobody", ("volume", volume), "nobody; the last was")
    finally:
        scene.cluster.admin.call("resume_group")
    scene.mended()


def test_who_watches_the_store_sees_what_a_killed_master_costs(scene: Scene) -> None:
    gone, volume = scene.cluster.host_of("b"), scene.field.volume("b")["id"]
    with scene.reader.started("drill", "watch", "--timeout", "120s", "-o", "json") as watching:
        assert watching.stderr is not None
        assert "is ready: break something now" in watching.stderr.readline()
        scene.field.kill_host(gone)
        out, err = watching.communicate(timeout=150)

    tree = json.loads(out)
    assert (watching.returncode, tree["good"], tree["broken"]) == (0, True, []), (out, err)
    assert any(each.startswith(f"{volume} of main/b left {gone}") for each in tree["lost"]), tree["lost"]
    assert 0 <= tree["recoveredAfter"] < 120
    scene.mended()


def test_a_provider_that_does_not_answer(scene: Scene) -> None:
    volume = scene.field.volume("a")["id"]
    with fault(scene, ApiDown):
        until(lambda: len(scene.cluster.notes("waiting")) >= 3, "all agents wait for it")
        waiting = "the local cloud does not answer list_volumes"
        scene.same(waiting, ("volume", volume), "serving", ready=True)
        far = scene.reader.status()
        assert "gone for good" not in _causes(far)
        assert [each["healthy"] for each in far["members"]] == [True] * 3
        assert [each["volume"] for each in far["members"]] == [scene.field.volume(each)["id"] for each in "abc"]


def test_a_name_server_that_is_silent_while_a_master_dies(scene: Scene) -> None:
    name = f"etcd-a.internal.{scene.cluster.name}"
    with fault(scene, SilentDns):
        scene.field.kill_host(scene.cluster.host_of("a"))
        scene.same("peers would turn us away", ("record", name), "waits")


def test_a_full_disk(scene: Scene) -> None:
    host, volume = scene.cluster.host_of("b"), scene.field.volume("b")["id"]
    fill_disk_of(scene.cluster, "b")
    scene.field.kill_host(host)
    scene.same("no space left on device", ("volume", volume))
    point = f"/mnt/master-{volume}"
    assert scene.cluster.inside(scene.cluster.host_of("b"), "rm", "-f", f"{point}/filler").returncode == 0
    until(lambda: not scene.cluster.notes("needsAPerson"), "the agent, which looks every ten seconds, sees the room")
    scene.mended()


def test_a_disk_that_is_blank_although_it_was_formed(scene: Scene) -> None:
    with another_image(scene, "c", blank) as volume:
        scene.same(f"{volume} was marked 'formed' and turns up blank", ("volume", volume))


def test_a_disk_of_somebody_else(scene: Scene) -> None:
    with another_image(scene, "a", of_somebody_else) as volume:
        scene.same(f"{volume} has no identity and is not proven blank", ("volume", volume))


def test_a_disk_that_is_a_copy_of_another_one(scene: Scene) -> None:
    volume = scene.field.volume("b")["id"]
    clone = Clone(lasts=0.0, member="b", source="c")
    clone.apply(scene.field)
    try:
        scene.same("the disk says", ("volume", volume))
    finally:
        clone.mend(scene.field)
    scene.mended()


def test_an_agent_that_cannot_read_what_it_is_told(scene: Scene) -> None:
    """Its etcd runs on: only that nobody looks after it shows."""
    host, volume = scene.cluster.host_of("a"), scene.field.volume("a")["id"]
    file = scene.cluster.paths.host(host) / "etc/protokube/agent.json"
    before = file.read_text()
    file.write_text("{")
    send(scene.field.agent_of(host), signal.SIGKILL)
    try:
        gone = f"the agent of {host} has reported nothing for|{host} holds {volume}, and gives no sign of life"
        scene.same(gone, ("volume", volume), f"nothing, until {host} has a live lease again")
    finally:
        file.write_text(before)
    scene.mended()


def test_a_generation_record_that_is_gone(scene: Scene) -> None:
    file = scene.cluster.paths.store / layout.etcd_generation(scene.cluster.name, "main")
    away = file.with_name("kept.json")
    file.rename(away)
    try:
        scene.same("the generation record of main is missing or cannot be read", ("member", "etcd-c"))
    finally:
        away.rename(file)
    scene.mended()


def test_a_quorum_that_is_lost_for_good(scene: Scene) -> None:
    """The last one: nothing brings these disks back."""
    gone = [scene.field.volume(member)["id"] for member in "ab"]
    for volume in gone:
        scene.cluster.admin.call("delete_volume", volume=volume)
    scene.same("gone for good", ("member", "etcd-a"), "keep every volume that is left")
    assert all(volume in _causes(scene.reader.status()) for volume in gone)
    assert scene.reader.run("etcd", "members").code == 3
