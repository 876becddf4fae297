"""Which free volumes a master reaches for, and why it leaves the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.agent import a_machine, a_volume
from clusters.scenario.host import wanted_of
from protokube.agent.volume.claims import ClaimPlan, plan_claims
from protokube.providers.machines import Machine
from protokube.providers.volumes import AttachmentState, Volume

MAIN, BOTH = wanted_of(), wanted_of("main events")
ME = a_machine()

STILL = "vol-old is being unmounted here"


def plan(*volumes: Volume, me: Machine = ME, zonal: bool = False, leaving: tuple[str, ...] = ()) -> ClaimPlan:
    return plan_claims(volumes, me, BOTH, zonal=zonal, leaving=dict.fromkeys(leaving, STILL))


def reached(*volumes: Volume, me: Machine = ME, zonal: bool = False, leaving: tuple[str, ...] = ()) -> list[str]:
    return [each.id for each in plan(*volumes, me=me, zonal=zonal, leaving=leaving).attach]


def why(*volumes: Volume, me: Machine = ME, zonal: bool = False, leaving: tuple[str, ...] = ()) -> dict[str, str]:
    return {each.id: text for each, text in plan(*volumes, me=me, zonal=zonal, leaving=leaving).leave}


def test_a_free_volume_is_reached_for() -> None:
    assert reached(a_volume()) == ["vol-a"]


def test_a_volume_that_is_ours_already_is_not_reached_for_and_keeps_others_of_its_cluster_away() -> None:
    reasons = why(a_volume(attached_to="i-1"), a_volume("vol-b", member="b"))
    assert reasons == {"vol-a": "already ours", "vol-b": "this machine already holds a member of main"}


def test_a_volume_of_another_machine_is_left_and_the_machine_is_named() -> None:
    assert why(a_volume(attached_to="i-2")) == {"vol-a": "attached to i-2"}


@pytest.mark.parametrize("holder", ["i-2", None])
@pytest.mark.parametrize("state", [AttachmentState.DETACHING, AttachmentState.BUSY])
def test_a_volume_that_its_provider_has_not_let_go_yet_is_waited_for(
    state: AttachmentState, holder: str | None
) -> None:
    volume = a_volume(attached_to=holder, state=state)
    assert plan(volume) == ClaimPlan((), (), ((volume, volume.between),))
    assert volume.between in ("it is busy", f"it is being detached from {holder or 'a machine'}")


def test_a_volume_on_its_way_to_another_machine_is_left() -> None:
    assert why(a_volume(attached_to="i-2", state=AttachmentState.ATTACHING)) == {"vol-a": "it is being attached to i-2"}
    assert why(a_volume(state=AttachmentState.ATTACHING)) == {"vol-a": "it is being attached to a machine"}


@pytest.mark.parametrize("state", AttachmentState)
def test_a_volume_that_is_not_detached_from_us_yet_keeps_others_of_its_cluster_away(state: AttachmentState) -> None:
    reasons = why(a_volume(attached_to="i-1", state=state), a_volume("vol-b", member="b"))
    assert reasons == {"vol-a": "already ours", "vol-b": "this machine already holds a member of main"}


def test_one_who_would_not_take_a_volume_does_not_wait_for_it() -> None:
    leaving = a_volume("vol-b", member="b", attached_to="i-2", state=AttachmentState.DETACHING)
    assert why(a_volume(attached_to="i-1"), leaving)["vol-b"] == "this machine already holds a member of main"
    assert why(replace(leaving, zone="far"), zonal=True) == {"vol-b": "in zone far, this machine is in local"}


def test_main_comes_before_events() -> None:
    found = reached(a_volume("vol-0", etcd_cluster="events"), a_volume("vol-9"))
    assert found == ["vol-9", "vol-0"]


def test_the_volume_we_held_last_comes_before_the_one_of_our_own_group() -> None:
    assert reached(a_volume("vol-b", member="b", last_holder="i-1"), a_volume()) == ["vol-b", "vol-a"]


def test_the_member_of_our_own_group_comes_before_the_others() -> None:
    volumes = [a_volume(), a_volume("vol-b", member="b"), a_volume("vol-c", member="c")]
    assert [reached(*volumes, me=a_machine(group=f"master-{short}"))[0] for short in "abc"] == [
        "vol-a", "vol-b", "vol-c",
    ]  # fmt: skip


def test_machines_without_a_group_of_their_own_begin_at_different_volumes() -> None:
    volumes = [a_volume(f"vol-{short}", member=short) for short in "abc"]
    first = {reached(*volumes, me=a_machine(f"i-{number}", group="masters"))[0] for number in range(20)}
    assert first == {"vol-a", "vol-b", "vol-c"}


def test_a_volume_in_another_zone_is_left_where_disks_are_zonal_and_only_there() -> None:
    far = a_volume(zone="elsewhere")
    assert why(far, zonal=True) == {"vol-a": "in zone elsewhere, this machine is in local"}
    assert reached(far, zonal=False) == ["vol-a"]


def test_tags_that_name_a_cluster_or_a_member_there_is_not_are_left_alone() -> None:
    reasons = why(a_volume("vol-x", etcd_cluster="other"), a_volume("vol-y", member="z"))
    assert reasons == {"vol-x": "no etcd cluster is called 'other'", "vol-y": "main has no member 'z'"}


def test_while_a_lost_volume_is_still_being_let_go_no_other_of_its_cluster_is_taken() -> None:
    assert reached(a_volume(), a_volume("vol-e", etcd_cluster="events"), leaving=("main",)) == ["vol-e"]


def test_a_free_volume_that_is_not_taken_because_another_may_still_be_attached_here_is_waited_for_with_the_reason() -> (
    None
):
    free, other = a_volume(), a_volume("vol-e", etcd_cluster="events", attached_to="i-1")
    assert plan(free, other, leaving=("main", "events")) == ClaimPlan((), ((other, "already ours"),), ((free, STILL),))


def test_while_a_volume_that_nobody_can_place_is_being_let_go_none_is_taken() -> None:
    assert reached(a_volume(), a_volume("vol-e", etcd_cluster="events"), leaving=("",)) == []


volumes = st.builds(
    lambda number, member, key, holder, zone, state: a_volume(
        f"vol-{number}", member=member, etcd_cluster=key, attached_to=holder, zone=zone, state=state
    ),
    st.integers(0, 99), st.sampled_from("abcz"), st.sampled_from(["main", "events", "x"]),
    st.sampled_from([None, "i-1", "i-2"]), st.sampled_from(["local", "far"]), st.sampled_from(AttachmentState),
)  # fmt: skip


@given(st.lists(volumes, unique_by=lambda each: each.id), st.booleans(), st.randoms())
def test_every_volume_is_either_reached_for_or_left_with_a_reason_whatever_the_order(
    observed: list[Volume], zonal: bool, random: object
) -> None:
    found = plan_claims(observed, ME, MAIN, zonal=zonal)
    others = (*found.leave, *found.wait)
    assert sorted(each.id for each in (*found.attach, *(one for one, _ in others))) == sorted(
        each.id for each in observed
    )
    assert all(text for _, text in others)
    assert all(each.is_free for each in found.attach)
    held = {each.etcd_cluster for each in observed if each.attached_to == ME.id}
    assert not held & {each.etcd_cluster for each in found.attach}
    shuffled = list(observed)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert plan_claims(shuffled, ME, MAIN, zonal=zonal) == found
