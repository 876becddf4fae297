"""Plans for groups; and a group controller whose hosts are plain processes that die and are replaced."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from clusters.local import PlainProcesses
from protokube.errors import InvalidRequest, TryLater
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.cloud import Cloud
from protokube.local.cloud.group import (
    FREE_RESTARTS,
    LONGEST_PAUSE,
    SHORT_LIFE,
    Group,
    Groups,
    Plan,
    StartBackoff,
    plan,
)
from protokube.local.cloud.host_registry import Host
from protokube.local.cloud.template import Template


def a_host(name: str, group: str) -> Host:
    return Host(name=name, group=group, zone="local", master=True, address="10.77.0.11", pid=1, started=1, dead=False)


def a_group(name: str, size: int) -> Group:
    return Group(name, size, Template())


@pytest.mark.parametrize(
    ("observed", "desired", "expected"),
    [
        ([], [], Plan()),
        ([], [("a", 1), ("b", 2)], Plan(start=("a", "b", "b"))),
        (["a-1"], [("a", 1)], Plan()),
        (["a-1", "a-2", "a-3"], [("a", 1)], Plan(stop=("a-2", "a-3"))),
        (["a-1"], [("a", 0)], Plan(stop=("a-1",))),
        (["a-1", "b-1"], [("a", 2), ("b", 0)], Plan(start=("a",), stop=("b-1",))),
        (["x-1"], [("a", 1)], Plan(start=("a",))),
    ],
)
def test_a_plan_is_the_difference_and_the_oldest_stay(
    observed: Sequence[str], desired: Sequence[tuple[str, int]], expected: Plan
) -> None:
    hosts = [a_host(name, name.partition("-")[0]) for name in observed]

    assert plan(hosts, [a_group(*each) for each in desired]) == expected


def test_a_few_short_lives_are_replaced_at_once_and_many_with_growing_pauses() -> None:
    backoff = StartBackoff()
    pauses = []
    for _ in range(FREE_RESTARTS + 6):
        backoff.record_lifetime(SHORT_LIFE / 2, now=100.0)
        pauses.append(max(0.0, backoff.not_before - 100.0))

    assert pauses == [0.0] * FREE_RESTARTS + [1.0, 2.0, 4.0, 8.0, LONGEST_PAUSE, LONGEST_PAUSE]


def test_a_long_life_forgives_the_short_ones_before_it() -> None:
    backoff = StartBackoff()
    for _ in range(FREE_RESTARTS):
        backoff.record_lifetime(0, now=100.0)
    backoff.record_lifetime(SHORT_LIFE * 2, now=100.0)
    backoff.record_lifetime(0, now=100.0)

    assert backoff.not_before == 0


class World:
    """A cloud whose hosts are plain processes."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths.at(folder / "dev")
        self.paths.create()
        self.database = Database(Path(":memory:"))
        self.machinery = PlainProcesses()
        self.cloud = Cloud(self.paths, self.database, self.machinery)
        self.workers = ThreadPoolExecutor(8)
        self.sockets: list[str] = []
        self.started: list[str] = []
        self.failures = 0

    def start(self, host: Host, template: Template) -> tuple[int, int]:
        if self.failures:
            self.failures -= 1
            raise TryLater("no room")
        self.started.append(host.name)
        return self.machinery.start()

    def groups(self) -> Groups:
        async def opened(name: str) -> None:
            self.sockets.append(name)

        return Groups(self.cloud, self.workers, self.start, open_socket=opened, close_socket=self.closed)

    def closed(self, name: str) -> None:
        if name in self.sockets:
            self.sockets.remove(name)

    def running(self) -> list[Host]:
        return [host for host in self.cloud.registry.living() if self.cloud.is_running(host)]

    def run(self, story: Callable[[Groups], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            groups = self.groups()
            try:
                await story(groups)
            finally:
                groups.close()

        asyncio.run(whole())

    def close(self) -> None:
        self.workers.shutdown()
        self.machinery.close()
        self.database.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


async def until(true: Callable[[], bool], seconds: float = 60) -> float:
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds
        await asyncio.sleep(0.005)
    return time.monotonic() - began


def kill(host: Host) -> None:
    assert host.pid is not None
    os.kill(host.pid, signal.SIGKILL)


def test_a_group_gets_its_hosts_and_each_has_a_socket_before_it_starts(world: World) -> None:
    async def story(groups: Groups) -> None:
        await groups.set_group("master-a", 1, {})
        await groups.set_group("nodes", 2, {})
        await until(lambda: len(world.running()) == 3)

        assert sorted(world.sockets) == sorted(world.started) == sorted(host.name for host in world.running())
        assert {host.group for host in world.running()} == {"master-a", "nodes"}

    world.run(story)


def test_a_dead_host_is_replaced_by_one_with_another_name_and_address(world: World) -> None:
    async def story(groups: Groups) -> None:
        await groups.set_group("master-a", 1, {})
        await until(lambda: len(world.running()) == 1)
        (old,) = world.running()

        kill(old)
        await until(lambda: [host.name != old.name for host in world.running()] == [True])

        (new,) = world.running()
        assert new.address != old.address
        await until(lambda: world.sockets == [new.name])
        assert world.cloud.registry.find(old.name).dead

    world.run(story)


def test_a_host_that_was_only_declared_dead_is_replaced_too_and_keeps_its_socket(world: World) -> None:
    async def story(groups: Groups) -> None:
        await groups.set_group("master-a", 1, {})
        await until(lambda: len(world.running()) == 1)
        (old,) = world.running()

        await asyncio.to_thread(lambda: world.cloud.declare_dead(old.name, kill=False))
        await until(lambda: len(world.running()) == 1)

        assert world.running()[0].name != old.name
        assert world.cloud.is_running(world.cloud.registry.find(old.name))
        assert old.name in world.sockets
        kill(old)
        await until(lambda: old.name not in world.sockets)
        assert len(world.running()) == 1

    world.run(story)


def test_a_paused_group_declares_dead_but_starts_nobody_until_it_goes_on(world: World) -> None:
    async def story(groups: Groups) -> None:
        await groups.set_group("master-a", 1, {})
        await until(lambda: len(world.running()) == 1)
        await groups.pause_group()
        kill(world.running()[0])
        await until(lambda: world.cloud.registry.living() == [])
        await asyncio.sleep(0.1)
        assert world.running() == []

        await groups.resume_group()

        await until(lambda: len(world.running()) == 1)

    world.run(story)


def test_a_host_that_is_declared_dead_while_it_starts_does_not_live_on(world: World) -> None:
    """Seen: the power failed while a group replaced a host, and the successor ran on as a dead one."""
    start, started, go_on = world.start, threading.Event(), threading.Event()

    def slowly(host: Host, template: Template) -> tuple[int, int]:
        started.set()
        assert go_on.wait(60)
        return start(host, template)

    world.start = slowly  # type: ignore[method-assign]

    async def story(groups: Groups) -> None:
        await groups.set_group("master-a", 1, {})
        await until(started.is_set)
        await groups.pause_group()
        await asyncio.to_thread(world.cloud.power_off)
        go_on.set()
        (host,) = world.cloud.registry.all_hosts()

        await until(lambda: host.name in world.started)
        await until(lambda: world.cloud.registry.find(host.name).pid is not None)
        await until(lambda: not world.cloud.is_running(world.cloud.registry.find(host.name)))
        await until(lambda: host.name not in world.sockets)

    world.run(story)


def test_a_group_that_shrinks_lets_the_youngest_go(world: World) -> None:
    async def story(groups: Groups) -> None:
        await groups.set_group("nodes", 3, {})
        await until(lambda: len(world.running()) == 3)
        oldest = world.running()[0].name

        await groups.set_group("nodes", 1, {})

        await until(lambda: [host.name for host in world.running()] == [oldest])
        await asyncio.sleep(0.05)
        assert [host.name for host in world.cloud.registry.living()] == [oldest]

    world.run(story)


def test_a_host_that_cannot_be_started_is_tried_again_under_another_name(world: World) -> None:
    world.failures = 1

    async def story(groups: Groups) -> None:
        await groups.set_group("master-a", 1, {})
        await until(lambda: len(world.running()) == 1)

        failed, started = world.cloud.registry.all_hosts()
        assert failed.dead
        assert world.sockets == [started.name]

    world.run(story)


def test_hosts_outlive_the_controller_and_the_next_one_goes_on_with_them(world: World) -> None:
    async def first(groups: Groups) -> None:
        await groups.set_group("nodes", 2, {})
        await until(lambda: len(world.running()) == 2)

    world.run(first)
    names = {host.name for host in world.running()}
    assert len(names) == 2
    world.sockets.clear()

    async def second(groups: Groups) -> None:
        await groups.adopt()
        groups.reconcile()
        assert set(world.sockets) == names
        victim = world.running()[0]
        kill(victim)
        await until(lambda: len({host.name for host in world.running()} - {victim.name}) == 2)

    world.run(second)
    assert len(world.started) == 3


@pytest.mark.parametrize(
    ("name", "size"), [("", 1), ("Master", 1), ("a/b", 1), ("-a", 1), ("a", -1), ("a", "1"), ("a", True), ("a", 1.0)]
)
def test_a_group_that_cannot_be_is_refused(world: World, name: str, size: Any) -> None:
    async def story(groups: Groups) -> None:
        with pytest.raises(InvalidRequest, match="cannot be a group"):
            await groups.set_group(name, size, {})
        assert groups.groups() == []

    world.run(story)


def test_a_template_that_cannot_be_is_refused_before_anything_is_kept(world: World) -> None:
    async def story(groups: Groups) -> None:
        with pytest.raises(InvalidRequest, match="template"):
            await groups.set_group("a", 1, {"files": {"/root/x": ""}})
        assert groups.groups() == []

    world.run(story)


def test_all_hosts_of_several_groups_start_at_the_same_time(world: World) -> None:
    together = threading.Barrier(3, timeout=10)
    start = world.start

    def wait_for_the_others(host: Host, template: Template) -> tuple[int, int]:
        together.wait()
        return start(host, template)

    async def story(groups: Groups) -> None:
        groups.start_host = wait_for_the_others
        for name in ("a", "b", "c"):
            await groups.set_group(name, 1, {})

        await until(lambda: len(world.running()) == 3)

    world.run(story)


def test_a_host_that_dies_again_and_again_is_given_a_rest(world: World) -> None:
    async def story(groups: Groups) -> None:
        await groups.set_group("a", 1, {})
        for number in range(FREE_RESTARTS + 1):
            await until(lambda: len(world.running()) == 1)
            assert len(world.started) == number + 1
            killed = time.monotonic()
            kill(world.running()[0])
            await until(lambda number=number: world.cloud.registry.all_hosts()[number].dead)  # type: ignore[misc]

        await until(lambda: len(world.running()) == 1)
        assert time.monotonic() - killed >= 1.0

    world.run(story)


def test_a_disk_that_cannot_be_taken_away_is_tried_again_until_it_can(world: World) -> None:
    async def story(groups: Groups) -> None:
        await groups.set_group("a", 2, {})
        await until(lambda: len(world.running()) == 2)
        youngest = world.running()[1]
        assert youngest.pid is not None
        world.machinery.undying.add(youngest.pid)

        await groups.set_group("a", 1, {})
        await until(lambda: world.cloud.registry.find(youngest.name).dead)
        assert world.cloud.is_running(youngest)
        world.machinery.undying.clear()

        await until(lambda: not world.cloud.is_running(youngest))

    world.run(story)


def test_a_group_whose_deletion_is_interrupted_starts_nobody_and_is_deleted_by_the_next_call(world: World) -> None:
    async def first(groups: Groups) -> None:
        await groups.set_group("a", 1, {})
        await until(lambda: len(world.running()) == 1)
        (host,) = world.running()
        assert host.pid is not None
        world.machinery.undying.add(host.pid)

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(groups.delete_group("a"), 0.2)

        assert [(group["name"], group["size"]) for group in await groups.list_groups()] == [("a", 0)]

    async def second(groups: Groups) -> None:
        world.machinery.undying.clear()
        await groups.adopt()
        groups.reconcile()

        await groups.delete_group("a")

        assert await groups.list_groups() == []
        assert [host for host in world.cloud.registry.all_hosts() if world.cloud.is_running(host)] == []
        assert len(world.started) == 1

    world.run(first)
    world.run(second)


def test_a_host_that_starts_while_its_group_is_deleted_does_not_live_on(world: World) -> None:
    start, started, go_on = world.start, threading.Event(), threading.Event()

    def slowly(host: Host, template: Template) -> tuple[int, int]:
        started.set()
        assert go_on.wait(60)
        return start(host, template)

    world.start = slowly  # type: ignore[method-assign]

    async def story(groups: Groups) -> None:
        await groups.set_group("a", 1, {})
        await until(started.is_set)
        (host,) = world.cloud.registry.all_hosts()

        await groups.delete_group("a")
        assert world.cloud.registry.living() == []
        go_on.set()

        await until(lambda: world.cloud.registry.find(host.name).pid is not None)
        await until(lambda: not world.cloud.is_running(world.cloud.registry.find(host.name)))
        assert world.started == [host.name]

    world.run(story)


def test_a_group_that_is_wanted_again_while_it_is_deleted_stays(world: World) -> None:
    async def story(groups: Groups) -> None:
        await groups.set_group("a", 1, {})
        await until(lambda: len(world.running()) == 1)
        (former,) = world.running()
        assert former.pid is not None
        world.machinery.undying.add(former.pid)

        deletion = asyncio.create_task(groups.delete_group("a"))
        await until(lambda: world.cloud.registry.find(former.name).dead)
        await groups.set_group("a", 1, {})
        world.machinery.undying.clear()
        await deletion

        await until(lambda: [host.group for host in world.running()] == ["a"])
        assert [(group["name"], group["size"]) for group in await groups.list_groups()] == [("a", 1)]
        assert not world.cloud.is_running(former)

    world.run(story)
