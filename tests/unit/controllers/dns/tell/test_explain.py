"""Why a name has its records: from the objects that ask for it to what the controller would do next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.dns_objects import LATER, Document, a_node, a_pod, a_service, an_ingress
from clusters.dns_round import OWNER, THE_ZONE, Story, a_record
from protokube.controllers.dns import Value
from protokube.controllers.dns.decide.zonerules import Managed, choose, parse_rules
from protokube.controllers.dns.tell.explain import Everything, askings, left_alone, names_written
from protokube.controllers.dns.tell.explain_zone import AtZone, at_zone
from protokube.controllers.dns.write.zonework import Policy
from protokube.records.owners import Mark, mark_name
from protokube.records.zones import Zone

NAME = "web.example.com"
POLICY = Policy(owner=OWNER)


def at(story: Story, name: str = NAME, why: str = "") -> AtZone:
    return at_zone(story.everything, THE_ZONE, name, POLICY, lambda _: why)


def asked(*documents: Document, name: str = NAME, reserved: str = "") -> list[tuple[str, str, tuple[str, ...]]]:
    story = Story(documents=list(documents), reserved=frozenset({reserved} - {""}))
    return [
        (each.source, " ".join(f"{value.type} {value.value}" for value in each.gives), each.why)
        for each in askings(story.everything, name)
    ]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (a_pod(host_network=False, internal_names=NAME), "not on its node's network"),
        (a_pod(node="", addresses=(), internal_names=NAME), "on no node yet"),
        (a_pod(addresses=(), internal_names=NAME), "no address yet"),
        (a_pod(phase="Succeeded", internal_names=NAME), "has ended (Succeeded)"),
        (a_pod(deleted=LATER, internal_names=NAME), "being deleted"),
        (a_pod(external_names=NAME), "there is no node n1"),
        (a_service("web", "ClusterIP", external_names=NAME), "cannot be reached from outside"),
        (a_service("web", "LoadBalancer", external_names=NAME), "no address yet"),
        (a_service("web", "NodePort", external_names=NAME), "no node of the role node"),
        (a_node(external_names=NAME), "lacks an external address"),
        (an_ingress("web", (NAME,)), "no address yet"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_an_object_that_names_it_and_gives_nothing_says_why(document: Document, why: str) -> None:
    ((_, gives, whys),) = asked(document)

    assert gives == ""
    assert why in whys[0]


def test_everybody_who_gives_something_is_told_with_it() -> None:
    found = asked(
        a_pod("one", internal_names=f"other.example.com, {NAME}"),
        a_service("two", "LoadBalancer", {"ip": "192.0.2.7"}, external_names=NAME.upper()),
        a_node("n1", internal_names="n1.example.com"),
    )

    assert found == [("pod/default/one", "A 10.0.0.1", ()), ("service/default/two", "A 192.0.2.7", ())]


def test_who_came_later_is_told_against_whom_it_lost() -> None:
    first = a_pod("first", internal_names=NAME)
    later = a_service("later", "LoadBalancer", {"hostname": "lb.net"}, external_names=NAME, created=LATER)
    (_, winner), (_, loser) = [(source, why) for source, _, why in asked(first, later)]

    assert winner == ()
    assert "pod/default/first was there first" in loser[0]


def test_a_name_of_the_agents_and_one_without_a_zone_are_told_as_such() -> None:
    ((_, _, ours),) = asked(a_pod(internal_names=NAME), reserved=NAME)
    ((_, _, outside),) = asked(a_pod(internal_names="web.other.org"), name="web.other.org")

    assert "agents answer for this name themselves" in ours[0]
    assert outside == ("no zone we manage holds web.other.org (rules: none)",)


def test_one_object_that_names_it_in_both_views_is_told_once() -> None:
    (found,) = askings(Story(documents=[a_node(internal_names=NAME, external_names=NAME)]).everything, NAME)

    assert found.views == ("internal", "external")
    assert found.gives == (Value("A", "10.0.0.1"),)


def test_zones_that_would_hold_it_and_are_left_alone_are_told() -> None:
    zones = [Zone(name="example.com", id="Z1"), Zone(name="example.com", id="Z2"), Zone(name="other.org", id="Z3")]
    seen = Everything(objects=(), managed=choose(zones, parse_rules(())))

    assert [zone.id for zone, _ in left_alone(seen, NAME)] == ["Z1", "Z2"]


def test_what_will_come_is_told_before_it_is_written_and_in_order_afterwards() -> None:
    story = Story(documents=[a_pod(internal_names=NAME)])
    before = at(story)
    story.round(*story.documents)
    after = at(story)

    assert [str(change) for change in before.changes] == [
        f"{NAME} A: nothing -> 10.0.0.1 (10.0.0.1 for pod/default/web)"
    ]
    assert not before.in_order
    assert after.in_order
    ((mark,),) = [each.marks for each in after.standing]
    assert mark == Mark(owner=OWNER, type="A", value="10.0.0.1", by="pod/default/web")


def test_a_value_that_nobody_asks_for_leaves_unless_somebody_doubts_it() -> None:
    story = Story()
    story.round(a_pod(internal_names=NAME))
    story.documents = []

    assert [(each.line.mark.value, each.held_by) for each in at(story).leaving] == [("10.0.0.1", "")]
    assert [each.held_by for each in at(story, why="it is there").leaving] == ["it is there"]
    assert at(story).changes == ()


def test_too_many_that_would_leave_at_once_are_held_by_the_guard() -> None:
    story = Story()
    story.round(*(a_pod(f"p{number}", internal_names=f"p{number}.example.com") for number in range(11)))
    story.documents = []
    (leaving,) = at(story, "p3.example.com").leaving

    assert leaving.held_by == "11 of 11 values would go at once, more than 10"


def test_what_stands_there_of_others_is_told_with_whose_it_is() -> None:
    story = Story(documents=[a_service("lb", "LoadBalancer", {"hostname": "lb.net"}, external_names=NAME)])
    theirs = Mark(owner="cluster-b", type="A", value="10.0.0.8", by="pod/x/y")
    gone = Mark(owner=OWNER, type="A", value="10.0.0.9", by="pod/x/z")
    marks = a_record("_protokube.web", str(theirs), str(gone), type="TXT")
    story.write(a_record("web", "10.0.0.7", "10.0.0.8"), marks)
    found = at(story)

    assert marks.name == mark_name(NAME)
    assert [(each.value, each.ttl, each.marks) for each in found.standing] == [
        ("10.0.0.7", 60, ()),
        ("10.0.0.8", 60, (theirs,)),
        ("10.0.0.9", None, (gone,)),
    ]
    assert [left.kind for left in found.left] == ["refused"]
    assert not found.in_order


def test_only_what_concerns_the_name_is_told() -> None:
    story = Story(documents=[a_pod("one", internal_names=NAME), a_pod("two", internal_names="other.example.com")])
    story.write(a_record("other", "192.0.2.9"))

    assert at(story).left == ()
    assert [left.kind for left in at(story, "other.example.com").left] == ["refused"]


def test_nothing_is_told_to_happen_at_a_name_of_the_agents_whatever_marks_say() -> None:
    story = Story()
    story.round(a_pod(internal_names=NAME))
    story.documents, story.reserved = [], frozenset({NAME})
    found = at(story)

    assert (found.changes, found.leaving) == ((), ())
    assert [each.value for each in found.standing] == ["10.0.0.1"]


@pytest.mark.parametrize(
    ("names", "answers"),
    [
        (("*",), "*.example.com"),
        (("*.a", "*"), "*.example.com"),
        (("*", "below.web"), ""),
        (("*", "_protokube.web"), ""),
        (("a",), ""),
    ],
)
def test_a_wildcard_is_told_where_it_answers_for_the_name(names: tuple[str, ...], answers: str) -> None:
    story = Story()
    story.write(*(a_record(name, "10.0.0.1") for name in names))

    assert at(story).wildcard == answers


def test_a_zone_that_cannot_be_read_is_no_empty_zone() -> None:
    seen = Everything(objects=(), managed=choose([THE_ZONE], ()), troubles={THE_ZONE: "it does not answer"})
    found = at_zone(seen, THE_ZONE, NAME, POLICY, lambda _: "")

    assert (found.trouble, found.in_order) == ("it does not answer", False)


def test_names_that_are_written_anywhere_are_known() -> None:
    story = Story(documents=[a_pod(internal_names="A.example.com"), an_ingress("i", ("b.example.com", ""))])

    assert names_written(story.everything) == {"a.example.com", "b.example.com"}


NAMES = ("web", "api", "db")
PODS = st.builds(
    lambda number, names, host: a_pod(
        f"p{number}",
        addresses=(f"10.0.0.{number}",),
        host_network=host,
        internal_names=",".join(f"{name}.example.com" for name in names),
    ),
    st.integers(1, 9),
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    st.booleans(),
)


@given(st.lists(PODS, max_size=6, unique_by=lambda pod: pod["metadata"]["name"]), st.lists(PODS, max_size=4))
def test_what_is_told_to_come_is_what_a_round_writes(before: list[Document], after: list[Document]) -> None:
    """The explanation and the controller decide by the same functions, whatever the zone held."""
    after = list({each["metadata"]["name"]: each for each in after}.values())
    story = Story()
    story.round(*before)
    story.documents = after
    explained = {name: at(story, f"{name}.example.com") for name in NAMES}
    done = story.round(*after)
    written = {str(change) for unit in done.zones[0].applied for change in unit if change.key[1] != "TXT"}

    assert {str(change) for each in explained.values() for change in each.changes} == written
    for name, each in explained.items():
        gives = {value for one in askings(story.everything, f"{name}.example.com") for value in one.gives}
        assert {(value.type, value.value) for value in gives} == {(want.type, want.value) for want in each.wanted}


def test_nothing_managed_is_no_error() -> None:
    seen = Everything(objects=(), managed=Managed(horizons={}))

    assert seen.zones_of(NAME) == ()
