"""From tasks to a graph: what is derived, what is refused, and that equal input gives equal order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.nodeup import a_task
from protokube.nodeup.order import Graph, WrongTasks, order
from protokube.nodeup.values import (
    Asset,
    Directory,
    File,
    Gone,
    Group,
    Image,
    Installed,
    Link,
    Module,
    Mount,
    Packages,
    Sysctl,
    Task,
    Unit,
    User,
)


def keys(graph: Graph) -> list[str]:
    return [task.key for task in graph.tasks]


def needs(task: Task, *others: Task) -> tuple[str, ...]:
    return order([task, *others]).needs[task.key]


def problems(*tasks: Task) -> list[str]:
    with pytest.raises(WrongTasks) as caught:
        order(tasks)
    return list(caught.value.problems)


HOSTS = File(path="/srv/a/hosts", content=b"")
DISK = Mount(device="/dev/sdb", path="/srv")
KUBELET = Asset(name="kubelet", sha256="0" * 64, urls=("file:///kubelet",))


def test_a_file_needs_the_directories_above_it_the_mount_that_covers_it_and_its_owners() -> None:
    file = File(path="/srv/a/b/c", content=b"", owner="etcd", group="ssl")
    others = (
        Directory(path="/srv/a"), Directory(path="/srv/a/b"), Directory(path="/srv/other"), DISK,
        User(name="etcd"), Group(name="ssl"), Group(name="etcd"),
    )  # fmt: skip

    assert needs(file, *others) == ("directory /srv/a", "directory /srv/a/b", "group ssl", "mount /srv", "user etcd")


def test_links_and_what_is_gone_and_units_need_what_is_above_them() -> None:
    etc, system = Directory(path="/etc"), Directory(path="/etc/systemd/system")

    assert needs(Link(path="/etc/a", target="b"), etc) == ("directory /etc",)
    assert needs(Gone(path="/etc/a"), etc) == ("directory /etc",)
    assert needs(Unit(name="a.service", content=""), etc, system) == ("directory /etc", "directory /etc/systemd/system")
    assert needs(Unit(name="a.service", drop_ins={"b.conf": ""}), system) == ("directory /etc/systemd/system",)
    assert needs(Unit(name="a.service"), system) == ()


def test_a_file_below_a_link_needs_the_link_and_a_link_needs_what_it_leads_to() -> None:
    link, version = Link(path="/opt/now", target="v1"), Directory(path="/opt/v1")

    assert needs(File(path="/opt/now/a", content=b""), link, version) == ("directory /opt/v1", "link /opt/now")
    assert needs(link, version) == ("directory /opt/v1",)
    assert needs(Link(path="/opt/now", target="../usr/./b"), Directory(path="/usr/b")) == ("directory /usr/b",)


def test_programs_and_images_need_their_asset_and_assets_the_mount_over_their_cache() -> None:
    program = Installed(asset="kubelet", path="/usr/local/bin/kubelet")
    cache = "/srv/cache"

    assert needs(program, KUBELET, Directory(path="/usr/local/bin")) == ("asset kubelet", "directory /usr/local/bin")
    assert needs(Image(name="pause", asset="kubelet"), KUBELET) == ("asset kubelet",)
    assert order([KUBELET, DISK], cache=cache).needs[KUBELET.key] == ("mount /srv",)


def test_the_members_of_an_archive_need_the_directory_that_they_fill() -> None:
    members = Installed(asset="kubelet", path="/opt/cni/bin", member="bin/*")

    assert needs(members, KUBELET, Directory(path="/opt/cni/bin")) == ("asset kubelet", "directory /opt/cni/bin")


def test_the_directory_at_a_mount_comes_after_it_since_it_is_that_of_the_disk() -> None:
    assert needs(Directory(path="/srv", mode=0o700), DISK) == ("mount /srv",)
    assert needs(DISK, Directory(path="/srv")) == ()


def test_units_need_what_restarts_them_and_users_their_group_and_parameters_all_modules() -> None:
    module = Module(file="k8s.conf", names=("br_netfilter",))

    assert needs(Unit(name="a.service", restart_on=(HOSTS.key,)), HOSTS) == (HOSTS.key,)
    assert needs(User(name="etcd", group="etcd"), Group(name="etcd")) == ("group etcd",)
    assert needs(Sysctl(file="k8s.conf", values={}), module) == (module.key,)


def test_what_is_said_in_after_counts_too() -> None:
    file = File(path="/a", content=b"", after=("packages containerd",))

    assert needs(file, Packages(names=("containerd",))) == ("packages containerd",)


def test_a_task_comes_as_early_as_it_was_declared_unless_it_needs_a_later_one() -> None:
    graph = order([a_task("a"), a_task("b", "d"), a_task("c"), a_task("d")])

    assert keys(graph) == ["command a", "command c", "command d", "command b"]


def test_all_problems_are_told_at_once() -> None:
    told = problems(
        a_task("a"), a_task("a"), a_task("b", "c"),
        Unit(name="x.service", restart_on=("file /none",)),
        Installed(asset="none", path="/bin/x"),
        File(path="etc/hosts", content=b""), File(path="/a/../b", content=b""), File(path="/a//b", content=b""),
        File(path="/x", content=b""), Link(path="/x", target="y"),
        File(path="/f", content=b""), File(path="/f/g", content=b""), Gone(path="/g"), Directory(path="/g/h"),
        Sysctl(file="../x", values={}), File(path="/a\nb", content=b""),
    )  # fmt: skip

    assert told == [
        "command a is declared 2 times",
        "command b names in `after` a task that does not exist: command c",
        "unit x.service names in `restart_on` a task that does not exist: file /none",
        "installed /bin/x names in `asset` a task that does not exist: asset none",
        "file etc/hosts: the path 'etc/hosts' is relative",
        "file /a/../b: the path '/a/../b' has `..` in it",
        "file /a//b: the path '/a//b' is not in its shortest form",
        "sysctl ../x: '../x' is not the name of a file",
        "sysctl ../x: the path '/etc/sysctl.d/../x' has `..` in it",
        "file /a\nb: the path '/a\\nb' has a control character in it",
        "/x is claimed by file /x and link /x",
        "file /f/g is below file /f, where a file will be",
        "directory /g/h is below gone /g, where nothing will be",
    ]


def test_a_path_has_one_owner_also_if_a_unit_or_parameters_write_it() -> None:
    unit, file = Unit(name="a.service", content=""), File(path="/etc/systemd/system/a.service", content=b"")
    values, same = Sysctl(file="a.conf", values={}), File(path="/etc/sysctl.d/a.conf", content=b"")

    assert problems(unit, file) == [f"{file.path} is claimed by unit a.service and {file.key}"]
    assert problems(values, same) == [f"{same.path} is claimed by sysctl a.conf and {same.key}"]


def test_two_names_of_one_file_are_found_through_the_links_above_them() -> None:
    link = Link(path="/opt/now", target="../srv/v1")
    one, other = File(path="/opt/now/conf", content=b""), File(path="/srv/v1/conf", content=b"")

    assert problems(link, one, other) == ["/srv/v1/conf is claimed by file /opt/now/conf and file /srv/v1/conf"]
    assert problems(link, one, Gone(path="/srv/v1")) == [
        "file /opt/now/conf is below gone /srv/v1, where nothing will be"
    ]
    assert needs(one, link, Directory(path="/srv"), DISK) == ("directory /srv", "link /opt/now", "mount /srv")


def test_a_cycle_is_shown_as_a_path_and_what_only_waits_for_it_is_not_blamed() -> None:
    told = problems(a_task("x", "a"), a_task("a", "b"), a_task("b", "c"), a_task("c", "a"), a_task("s", "s"))

    assert told == [
        "these need each other: command a -> command b -> command c -> command a",
        "these need each other: command s -> command s",
    ]


def test_an_empty_list_is_a_graph() -> None:
    assert order([]) == Graph(())


edges = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=40)


@given(edges=edges)
def test_each_task_comes_after_all_that_it_needs_or_a_true_cycle_is_shown(edges: Sequence[tuple[int, int]]) -> None:
    after: dict[int, set[int]] = {number: set() for number in range(15)}
    for one, other in edges:
        after[one].add(other)
    tasks = [a_task(str(number), *map(str, sorted(after[number]))) for number in after]

    try:
        graph = order(tasks)
    except WrongTasks as wrong:
        for problem in wrong.problems:
            cycle = [int(each.removeprefix("command ")) for each in problem.partition(": ")[2].split(" -> ")]
            assert cycle[0] == cycle[-1]
            assert all(other in after[one] for one, other in pairwise(cycle))
    else:
        place = {key: number for number, key in enumerate(keys(graph))}
        assert len(place) == len(tasks)
        assert all(place[f"command {one}"] > place[f"command {other}"] for one, other in edges)


@given(edges=edges, seed=st.integers())
def test_equal_input_gives_equal_order_and_what_is_needed_depends_on_no_order(
    edges: Sequence[tuple[int, int]], seed: int
) -> None:
    downward = [(one, other) for one, other in edges if one > other]
    tasks = [a_task(str(n), *(str(other) for one, other in downward if one == n)) for n in range(15)]
    shuffled = random.Random(seed).sample(tasks, len(tasks))

    assert order(shuffled) == order(list(shuffled))
    assert order(shuffled).needs == order(tasks).needs
