"""What comes next is never better than the truth: for every phase, with and without a quorum, whoever is elected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from builders.view import CLUSTER, a_generation, a_host, a_note, a_view, an_agent, but
from protokube.cli.render.explain_member import explain_member
from protokube.cli.render.explain_volume import explain_volume
from protokube.members.phases import Phase
from protokube.view.cluster import ClusterView
from protokube.view.needs import needs
from protokube.view.next import Next, Way, mounted_volume, next_for_member, next_for_record, next_for_volume
from protokube.view.values import DaemonView

VIEW = a_view()
OLD = 75.0
REFUSALS = [each.value for each in Phase if each.is_refusal]
thorough = examples(150)


@st.composite
def views(draw: st.DrawFn) -> ClusterView:
    """Clusters in any state, also in states that cannot be: nothing may be promised for those either."""
    hosts = tuple(
        a_host(number, alive=draw(st.booleans()), dead=draw(st.sampled_from([False, False, True])))
        for number in range(draw(st.integers(0, 4)))
    )
    names = [each.name for each in hosts]
    holders = st.sampled_from([None, "master-9", *names])
    phases = st.sampled_from(["", *(each.value for each in Phase)])
    disks, members = [], []
    for disk, member in zip(VIEW.disks, VIEW.members, strict=True):
        there, holder = draw(st.sampled_from([True, True, False])), draw(holders)
        if there:
            mark = draw(st.sampled_from(["formed", "formed", "forming", ""]))
            disks.append(replace(disk, attached_to=holder, phase=draw(phases), mark=mark))
        healthy = draw(st.booleans())
        told: dict[str, Any] = {"healthy": healthy, "learner": draw(st.sampled_from([False, False, True]))}
        told |= {"volume": disk.id if there else None, "host": holder if there else None, "asked": draw(st.booleans())}
        members.append(replace(member, **told, why="" if healthy else "timed out"))
    agents = []
    for number, name in enumerate(names):
        if draw(st.sampled_from([True, True, False])):
            held = {each.id: each.phase for each in disks if each.attached_to == name and each.phase}
            doing, why = draw(
                st.sampled_from(
                    [("going on", ""), ("joining", ""), ("undecided", ""), ("waiting", "x"), ("refused", "y")]
                )
            )
            one = an_agent(min(number, 2)).mounted[0]
            volumes = tuple(replace(one, volume=volume, doing=doing, why=why) for volume in held)
            asked = draw(st.sampled_from([(), (), (a_note("refused", about="main/a", hint="act"),)]))
            serving = draw(st.sampled_from([None, True, False]))
            age, elected = draw(st.sampled_from([1.0, OLD])), draw(st.booleans())
            agents.append(
                an_agent(
                    0, host=name, age=age, elected=elected, phases=held, mounted=volumes, person=asked, serving=serving
                )
            )
    record = draw(st.sampled_from([a_generation(), a_generation(), a_generation(open=True), None]))
    daemon = draw(
        st.sampled_from([DaemonView(alive=True), DaemonView(alive=True), DaemonView(alive=False, why="gone")])
    )
    return a_view(
        hosts=hosts, disks=tuple(disks), members=tuple(members), agents=tuple(agents), generations={"main": record},
        daemon=daemon,
    )  # fmt: skip


def all_next(view: ClusterView) -> list[Next]:
    names = [*view.api_names, *(each.dns_name for each in view.members), "www.example.com"]
    return [
        *(next_for_volume(view, each) for each in view.disks),
        *(next_for_member(view, each) for each in view.members),
        *(next_for_record(view, each) for each in names),
    ]


@thorough
@given(views())
def test_something_is_always_said(view: ClusterView) -> None:
    assert all(each.text.strip() for each in all_next(view))


@thorough
@given(views())
def test_no_act_of_an_elected_master_is_promised_unless_one_is_elected_behind_a_quorum(view: ClusterView) -> None:
    promised = [each for each in all_next(view) if "the elected master" in each.text]

    if promised:
        assert view.elected is not None
        assert view.current(view.elected)
        assert view.has_quorum("main")
        assert all(view.elected in each.text and each.way is Way.BY_ITSELF for each in promised)


@thorough
@given(views())
def test_nothing_is_in_order_that_is_ill_stale_refused_or_contradicted(view: ClusterView) -> None:
    for disk in view.disks:
        if next_for_volume(view, disk).way is Way.IN_ORDER:
            member = view.member(disk.member)
            assert member is not None
            assert (member.healthy, member.asked, member.learner) == (True, True, False)
            assert view.current(disk.attached_to)
            assert disk.phase == "serving"
            assert disk.mark == "formed"
            assert not any(disk.id in each for each in view.contradictions)
    for member in view.members:
        if next_for_member(view, member).way is Way.IN_ORDER:
            assert member.healthy
            assert view.current(member.host)
    for name in view.api_names:
        if next_for_record(view, name).way is Way.IN_ORDER:
            owners = {each.address for each in view.hosts if view.current(each.name)}
            assert set(view.addresses(name)) <= owners
    assert all(("in order" in each.text) == (each.way is Way.IN_ORDER) for each in all_next(view))


@thorough
@given(views())
def test_nothing_happens_by_itself_to_what_needs_a_person(view: ClusterView) -> None:
    whole = list(needs(view))
    for disk in view.disks:
        way = next_for_volume(view, disk).way
        mounted = mounted_volume(view, disk)
        rejoins = disk.phase == "removed" and mounted is not None and mounted.doing == "waiting"
        refused = disk.phase in REFUSALS and disk.phase != "superseded" and not rejoins
        if whole or (refused and view.current(disk.attached_to)):
            assert way is Way.PERSON
        if any(each.note.about == disk.member for each in view.person):
            assert explain_volume(view, disk.id).next.startswith("a person acts: ")
    for member in view.members:
        if whole:
            assert next_for_member(view, member).way is Way.PERSON
        if any(each.note.about == member.member for each in view.person):
            assert explain_member(view, member.name).next.startswith("a person acts: ")


@pytest.mark.parametrize("phase", [*Phase, None])
@pytest.mark.parametrize("holder", ["current", "frozen", "silent", "not running", "dead", "unknown", "nobody"])
@pytest.mark.parametrize("quorum", [True, False])
@pytest.mark.parametrize("record", ["closed", "open", "missing"])
def test_each_phase_says_something_in_each_state_of_its_holder(
    phase: Phase | None, holder: str, quorum: bool, record: str
) -> None:
    host = {"not running": {"alive": False}, "dead": {"dead": True}}.get(holder, {})
    agents = {"frozen": but(VIEW.agents, 0, age=OLD), "silent": VIEW.agents[1:]}.get(holder, VIEW.agents)
    at = {"unknown": "master-9", "nobody": None}.get(holder, "master-0")
    known = {"closed": a_generation(), "open": a_generation(open=True), "missing": None}[record]
    view = a_view(
        hosts=but(VIEW.hosts, 0, **host), agents=agents, generations={"main": known},
        disks=but(VIEW.disks, 0, phase=phase.value if phase else "", attached_to=at),
        members=tuple(replace(each, healthy=quorum, host=at if n == 0 else each.host)
                      for n, each in enumerate(VIEW.members)),
    )  # fmt: skip
    found = next_for_volume(view, view.disks[0])

    assert found.text
    if record == "missing":
        assert found.way is Way.PERSON
    in_order = (phase, holder, quorum, record) in {
        (Phase.SERVING, "current", True, each) for each in ("closed", "open")
    }
    assert (found.way is Way.IN_ORDER) == in_order


# What was promised before, and was not so.


def nobody_answers(**changes: Any) -> ClusterView:
    return a_view(
        **{"members": tuple(replace(each, healthy=False, why="timed out") for each in VIEW.members)} | changes
    )


def test_no_new_volume_is_promised_while_nobody_can_be_elected() -> None:
    view = nobody_answers(
        members=(
            replace(VIEW.members[0], volume=None, host=None, healthy=False),
            replace(VIEW.members[1], healthy=False),
            VIEW.members[2],
        ),
        disks=VIEW.disks[1:],
    )

    assert str(next_for_member(view, view.members[0])) == (
        "nothing, until 2 of 3 members of main answer (1 now): no volume is made without a quorum"
    )


def test_two_of_three_volumes_gone_are_a_persons_and_hosts_that_are_down_are_not() -> None:
    gone = nobody_answers(
        disks=VIEW.disks[2:],
        members=(*(replace(each, volume=None, host=None, healthy=False) for each in VIEW.members[:2]), VIEW.members[2]),
    )
    down = nobody_answers(hosts=tuple(replace(each, alive=False) for each in VIEW.hosts))

    (need,) = gone.person
    assert need.note.text.startswith("gone for good: the volumes of main/a (vol-aaaa), main/b (vol-bbbb); main keeps 1")
    assert str(next_for_member(gone, gone.members[0])).startswith("a person acts: keep every volume that is left")
    assert down.person == ()


def test_volumes_that_went_while_their_members_still_answer_need_nobody_yet() -> None:
    members = tuple(replace(each, volume=None, host=None) for each in VIEW.members[:2])

    assert a_view(disks=VIEW.disks[2:], members=(*members, VIEW.members[2])).person == ()


def test_a_volume_of_a_frozen_agent_is_not_in_order_though_its_member_answers() -> None:
    view = a_view(agents=but(VIEW.agents, 0, age=OLD))

    assert str(next_for_volume(view, view.disks[0])) == (
        "nothing, until the agent of master-0 runs again: it has reported nothing for 75 s"
    )
    assert next_for_member(view, view.members[0]).way is Way.WAITS


def test_a_free_volume_is_promised_to_nobody_if_all_masters_that_run_hold_one() -> None:
    view = a_view(hosts=VIEW.hosts[1:], disks=but(VIEW.disks, 0, attached_to=None, phase="free"))

    assert next_for_volume(view, view.disks[0]).text == (
        "nothing, until a master runs that holds no member of main: all that run hold one"
    )


def test_a_volume_of_nobody_that_is_still_being_detached_is_promised_to_nobody() -> None:
    view = a_view(hosts=VIEW.hosts, disks=but(VIEW.disks, 0, attached_to=None, phase="taken", state="detaching"))

    assert next_for_volume(view, view.disks[0]) == Next(
        Way.WAITS, "nothing, until its cloud has completed what it does: the volume is detaching"
    )


def test_a_name_of_the_api_that_leads_to_a_frozen_master_is_not_in_order() -> None:
    name = f"api.internal.{CLUSTER}"
    frozen = a_view(agents=(an_agent(0, age=OLD), an_agent(1, elected=True), an_agent(2)))

    assert next_for_record(VIEW, name).way is Way.IN_ORDER
    assert str(next_for_record(frozen, name)) == "master-1, the elected master, points it at 10.77.0.12, 10.77.0.13"


def test_a_record_that_is_missing_comes_before_everything_else() -> None:
    view = a_view(generations={"main": None})

    assert [each.note.about for each in view.person] == ["main"]
    assert next_for_volume(view, view.disks[0]).text.startswith("a person acts: restore it from a backup")


def test_before_any_host_starts_a_record_that_is_not_written_yet_needs_nobody() -> None:
    disks = tuple(replace(each, mark="", attached_to=None, phase="free") for each in VIEW.disks)
    making = a_view(hosts=(), agents=(), disks=disks, generations={"main": None})

    assert making.person == ()


def test_what_waits_for_a_quorum_is_not_said_to_be_linked_soon() -> None:
    why = "main/a is blank and joins the others once they have a quorum"
    mounted = replace(VIEW.agents[0].mounted[0], doing="waiting", why=why)
    view = nobody_answers(
        disks=but(VIEW.disks, 0, phase="mounted"),
        agents=but(VIEW.agents, 0, mounted=(mounted,), phases={"vol-aaaa": "mounted"}),
    )

    assert next_for_volume(view, view.disks[0]).text == f"its agent waits: {why}"


# What was reported and cannot all be true.

CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "two are elected": (
        {"agents": but(VIEW.agents, 2, elected=True)},
        "master-0 and master-2 both report that they are elected",
    ),
    "it serves what another holds": (
        {"disks": but(VIEW.disks, 0, attached_to="master-1", phase="")},
        "master-0 reports that it serves vol-aaaa, which is attached to master-1",
    ),
    "it serves what is free": (
        {"disks": but(VIEW.disks, 0, attached_to=None, phase="free")},
        "master-0 reports that it serves vol-aaaa, which is attached to nobody",
    ),
    "it serves what is not there": (
        {"disks": VIEW.disks[1:]},
        "master-0 reports that it serves vol-aaaa, which the cloud does not list",
    ),
    "two claim one volume": (
        {"agents": but(VIEW.agents, 1, phases={"vol-aaaa": "mounted"})},
        "vol-aaaa is claimed by master-0 (serving) and master-1 (mounted)",
    ),
    "healthy and refused": (
        {"disks": but(VIEW.disks, 0, phase="older copy"), "agents": but(VIEW.agents, 0, phases={})},
        "etcd-a answers as healthy, and master-0 reports vol-aaaa as older copy",
    ),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_reports_that_cannot_all_be_true_are_said_and_the_cluster_is_not_ready(what: str) -> None:
    changes, sentence = CONTRADICTIONS[what]
    view = a_view(**changes)

    assert view.contradictions == (sentence,)
    assert sentence in view.lacks


def test_what_a_stale_report_says_contradicts_nobody() -> None:
    agents = (an_agent(0, age=OLD), an_agent(1, elected=True, phases={"vol-aaaa": "mounted"}), an_agent(2))

    assert a_view(agents=agents).contradictions == ()


def test_a_volume_that_several_agents_call_superseded_is_claimed_by_none() -> None:
    phases = {"vol-old": "superseded"}
    agents = tuple(replace(each, phases={**each.phases, **phases}) for each in VIEW.agents)

    assert a_view(agents=agents).contradictions == ()


@thorough
@given(views())
def test_a_cluster_is_ready_only_if_every_master_that_runs_has_reported_in_time(view: ClusterView) -> None:
    if view.ready:
        running = [each for each in view.hosts if each.alive and not each.dead]
        assert all(view.current(each.name) for each in running)
        assert len(view.claim_election) <= 1


@pytest.mark.parametrize(
    ("doing", "why", "way", "text"),
    [
        (
            "waiting",
            "member 1 was removed; it rejoins",
            Way.BY_ITSELF,
            "its agent waits: member 1 was removed; it rejoins",
        ),
        ("refused", "member 1 was removed again", Way.PERSON, "nothing, until a person acts"),
    ],
)
def test_a_removed_member_rejoins_by_itself_only_while_its_agent_says_so(
    doing: str, why: str, way: Way, text: str
) -> None:
    mounted = replace(VIEW.agents[0].mounted[0], volume=VIEW.disks[0].id, doing=doing, why=why)
    view = a_view(
        disks=but(VIEW.disks, 0, phase="removed"),
        agents=but(VIEW.agents, 0, mounted=(mounted,), phases={VIEW.disks[0].id: "removed"}),
        members=but(VIEW.members, 0, healthy=False, why="nothing answers at etcd-a yet"),
    )

    assert next_for_volume(view, view.disks[0]) == Next(way, text)
    assert next_for_member(view, view.members[0]) == Next(way, text)
    lacks = [each for each in view.lacks if view.members[0].name in each]
    assert lacks == [f"{view.members[0].name} on {view.members[0].host} was removed from etcd's member list"]
