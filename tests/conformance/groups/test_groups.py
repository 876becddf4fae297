"""What holds for instance groups of every kind: sizes, templates, and a deletion that leaves the volumes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders.volumes import a_volume
from conformance.groups.worlds import GroupWorld
from protokube.errors import InvalidRequest, TryLater
from protokube.providers.groups import Group


def a_group(cloud: GroupWorld, name: str = "master-a", size: int = 1) -> Group:
    return Group(name=name, size=size, template=cloud.template)


def test_groups_are_listed_by_name_as_they_were_ensured(cloud: GroupWorld) -> None:
    groups = cloud.groups()
    assert list(groups.list_groups()) == []
    other = Group(name="nodes", size=0, template=cloud.changed_template)

    groups.ensure(other)
    groups.ensure(a_group(cloud))

    assert list(cloud.groups().list_groups()) == [a_group(cloud), other]


def test_a_group_gets_as_many_machines_as_its_size_and_from_its_template(cloud: GroupWorld) -> None:
    cloud.groups().ensure(a_group(cloud, "master-a", 2))
    cloud.groups().ensure(Group(name="nodes", size=1, template=cloud.changed_template))

    masters, nodes = cloud.settled("master-a", 2), cloud.settled("nodes", 1)

    assert [machine.master for machine in (*masters, *nodes)] == [True, True, False]
    assert [machine.zone for machine in nodes] == ["b"]


def test_an_ensured_group_can_be_ensured_again_and_keeps_its_machines(cloud: GroupWorld) -> None:
    cloud.groups().ensure(a_group(cloud))
    before = cloud.settled("master-a", 1)

    cloud.groups().ensure(a_group(cloud))

    assert cloud.machines("master-a") == before
    assert list(cloud.groups().list_groups()) == [a_group(cloud)]


def test_a_group_that_grows_keeps_its_machines_and_one_that_shrinks_loses_the_youngest(cloud: GroupWorld) -> None:
    cloud.groups().ensure(a_group(cloud))
    (first,) = cloud.settled("master-a", 1)

    cloud.groups().ensure(a_group(cloud, size=3))
    assert first in cloud.settled("master-a", 3)
    cloud.groups().ensure(a_group(cloud, size=1))

    assert cloud.settled("master-a", 1) == [first]


def test_a_changed_template_is_for_machines_that_start_later(cloud: GroupWorld) -> None:
    cloud.groups().ensure(a_group(cloud))
    (first,) = cloud.settled("master-a", 1)

    cloud.groups().ensure(Group(name="master-a", size=2, template=cloud.changed_template))

    assert [machine.zone for machine in cloud.settled("master-a", 2)] == [first.zone, "b"]
    assert cloud.machines("master-a")[0] == first


def test_a_deleted_group_takes_its_machines_along_and_no_others(cloud: GroupWorld) -> None:
    cloud.groups().ensure(a_group(cloud, "master-a", 2))
    cloud.groups().ensure(a_group(cloud, "master-b"))
    cloud.settled("master-a", 2)
    others = cloud.settled("master-b", 1)

    cloud.groups().delete("master-a")

    assert list(cloud.groups().list_groups()) == [a_group(cloud, "master-b")]
    assert cloud.machines("master-a") == []
    assert cloud.machines("master-b") == others


def test_the_volumes_of_a_deleted_group_stay_and_are_free(cloud: GroupWorld) -> None:
    (volume,) = cloud.pool().create_founders([a_volume()])
    cloud.groups().ensure(a_group(cloud))
    (machine,) = cloud.settled("master-a", 1)
    cloud.attach(volume.id, machine.id)

    cloud.groups().delete("master-a")

    assert cloud.pool().list_volumes() == [volume]


def test_a_machine_that_died_just_before_is_not_replaced_in_a_deleted_group(cloud: GroupWorld) -> None:
    cloud.groups().ensure(a_group(cloud))
    (machine,) = cloud.settled("master-a", 1)
    cloud.kill(machine.id)

    cloud.groups().delete("master-a")

    assert cloud.settled("master-a", 0) == []
    assert list(cloud.groups().list_groups()) == []


def test_deleting_what_is_not_there_has_no_effect(cloud: GroupWorld) -> None:
    cloud.groups().ensure(a_group(cloud, size=0))

    for name in ("master-b", "", "master-", "%", "*"):
        cloud.groups().delete(name)
    assert list(cloud.groups().list_groups()) == [a_group(cloud, size=0)]
    cloud.groups().delete("master-a")
    cloud.groups().delete("master-a")

    assert list(cloud.groups().list_groups()) == []


def test_a_deleted_group_can_be_created_again_with_new_machines(cloud: GroupWorld) -> None:
    cloud.groups().ensure(a_group(cloud))
    (former,) = cloud.settled("master-a", 1)
    cloud.groups().delete("master-a")

    cloud.groups().ensure(a_group(cloud))

    assert cloud.settled("master-a", 1)[0].id != former.id


def test_a_group_that_cannot_be_changes_nothing(cloud: GroupWorld) -> None:
    good = a_group(cloud, size=0)
    cloud.groups().ensure(good)

    for wrong in (
        replace(good, name="Master"),
        replace(good, name=""),
        replace(good, name="a/b"),
        replace(good, size=-1),
        replace(good, template=cloud.wrong_template),
    ):
        with pytest.raises(InvalidRequest):
            cloud.groups().ensure(wrong)

    assert list(cloud.groups().list_groups()) == [good]


def test_a_provider_that_does_not_answer_has_no_empty_list(cloud: GroupWorld) -> None:
    groups = cloud.unreachable_groups()

    calls: list[Callable[[], object]] = [
        groups.list_groups,
        lambda: groups.ensure(a_group(cloud)),
        lambda: groups.delete("master-a"),
    ]
    for call in calls:
        with pytest.raises(TryLater):
            call()
