"""Which zone each value goes to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders.dns_objects import FIRST, LATER, lines
from protokube.controllers.dns import View
from protokube.controllers.dns.decide.desired import Desired, RequestedValue
from protokube.controllers.dns.decide.routing import Routed, route
from protokube.controllers.dns.decide.zonerules import Managed, choose, parse_rules
from protokube.records.names import inside
from protokube.records.owners import Want
from protokube.records.zones import Zone

PUBLIC, PRIVATE = Zone(name="example.com", id="Z1"), Zone(name="example.com", id="Z2", private=True)
DEEPER = Zone(name="deep.example.com", id="Z3")


def asked(name: str, view: View, value: str, by: str = "pod/a", created: str = FIRST) -> RequestedValue:
    kind = "CNAME" if value.endswith("net") else "A"
    return RequestedValue(Want(name=name, type=kind, value=value, by=by), view, created)


def want_all(*some: RequestedValue, inside: frozenset[str] = frozenset()) -> Desired:
    names = frozenset(one.want.name for one in some if one.view == "internal")
    return Desired(asked=tuple(sorted(some)), inside=names | inside, problems=(), pending=())


def routed(zones: list[Zone], *some: RequestedValue, reserved: tuple[str, ...] = ()) -> Routed:
    return route(want_all(*some), choose(zones, parse_rules([])), reserved=reserved)


def test_a_name_of_etcds_goes_nowhere_and_its_owner_is_told() -> None:
    names = ("etcd-a.in.example.com", "etcd-events-c.in.example.com", "etcd-b.example.com", "web.in.example.com")
    wanted = want_all(*(asked(name, "external", "192.0.2.1") for name in names))
    found = route(wanted, choose([PUBLIC], parse_rules([])), members=["etcd-a.in.example.com"])
    assert [want.name for want in found.wants[PUBLIC]] == ["etcd-b.example.com", "web.in.example.com"]
    assert [problem.name for problem in found.problems] == ["etcd-a.in.example.com", "etcd-events-c.in.example.com"]


BOTH_VIEWS = (asked("a.example.com", "internal", "10.0.0.1"), asked("a.example.com", "external", "192.0.2.1"))


def test_in_a_split_horizon_each_view_has_its_own_zone() -> None:
    wants = routed([PUBLIC, PRIVATE], *BOTH_VIEWS).wants

    assert lines(wants[PUBLIC]) == ["a.example.com A 192.0.2.1 pod/a"]
    assert lines(wants[PRIVATE]) == ["a.example.com A 10.0.0.1 pod/a"]


def test_a_name_that_is_only_external_is_also_seen_from_inside() -> None:
    wants = routed([PUBLIC, PRIVATE], asked("a.example.com", "external", "192.0.2.1")).wants

    assert wants[PUBLIC] == wants[PRIVATE] != ()


def test_a_name_that_is_only_internal_stays_inside() -> None:
    wants = routed([PUBLIC, PRIVATE], asked("a.example.com", "internal", "10.0.0.1")).wants

    assert wants[PUBLIC] == ()
    assert lines(wants[PRIVATE]) == ["a.example.com A 10.0.0.1 pod/a"]


def test_an_internal_name_without_an_address_at_the_moment_is_not_filled_with_external_ones() -> None:
    wanted = want_all(asked("a.example.com", "external", "192.0.2.1"), inside=frozenset({"a.example.com"}))

    assert route(wanted, choose([PUBLIC, PRIVATE], parse_rules([]))).wants[PRIVATE] == ()


def test_in_one_zone_alone_both_views_stand_side_by_side() -> None:
    for zone in (PUBLIC, PRIVATE):
        assert lines(routed([zone], *BOTH_VIEWS).wants[zone]) == [
            "a.example.com A 10.0.0.1 pod/a",
            "a.example.com A 192.0.2.1 pod/a",
        ]


def test_two_views_that_cannot_stand_side_by_side_conflict_only_where_they_meet() -> None:
    rivals = (
        asked("a.example.com", "internal", "10.0.0.1", "pod/a", LATER),
        asked("a.example.com", "external", "lb.example.net", "service/b", FIRST),
    )

    apart, together = routed([PUBLIC, PRIVATE], *rivals), routed([PUBLIC], *rivals)

    assert apart.problems == ()
    assert lines(apart.wants[PRIVATE]) == ["a.example.com A 10.0.0.1 pod/a"]
    assert lines(together.wants[PUBLIC]) == ["a.example.com CNAME lb.example.net service/b"]
    assert [problem.source for problem in together.problems] == ["pod/a"]


def test_a_name_goes_to_the_longest_zone_we_manage() -> None:
    wants = routed([PUBLIC, DEEPER], asked("a.deep.example.com", "internal", "10.0.0.1")).wants

    assert wants == {PUBLIC: (), DEEPER: (Want(name="a.deep.example.com", type="A", value="10.0.0.1", by="pod/a"),)}


def test_a_name_in_no_zone_of_ours_is_told_and_harms_no_other() -> None:
    found = route(
        want_all(asked("a.example.org", "external", "192.0.2.1"), asked("a.example.com", "external", "192.0.2.1")),
        choose([PUBLIC], parse_rules(["example.com", "*/Z7"])),
    )

    assert lines(found.wants[PUBLIC]) == ["a.example.com A 192.0.2.1 pod/a"]
    assert [(problem.source, problem.name, problem.why) for problem in found.problems] == [
        ("pod/a", "a.example.org", "no zone we manage holds a.example.org (rules: */Z7, example.com)")
    ]


def test_names_of_the_agents_are_taken_out_and_told_apart() -> None:
    found = routed([PUBLIC], asked("api.example.com", "external", "192.0.2.1"), reserved=("api.example.com",))

    assert found.wants == {PUBLIC: ()}
    assert found.problems == ()
    assert [(one.source, one.name) for one in found.reserved] == [("pod/a", "api.example.com")]


def test_no_cname_goes_to_the_top_of_its_zone() -> None:
    found = routed([PUBLIC], asked("example.com", "external", "lb.example.net"))

    assert found.wants == {PUBLIC: ()}
    assert "top of a zone" in found.problems[0].why


def test_without_any_zone_everything_is_told() -> None:
    found = route(want_all(*BOTH_VIEWS), Managed(horizons={}))

    assert found.wants == {}
    assert len(found.problems) == 1


views: st.SearchStrategy[View] = st.sampled_from(["internal", "external"])
some_asked = st.lists(
    st.builds(
        asked,
        st.sampled_from(["example.com", "a.example.com", "b.deep.example.com", "api.example.com", "a.example.org"]),
        views,
        st.sampled_from(["10.0.0.1", "192.0.2.1", "lb.example.net"]),
        st.sampled_from(["pod/a", "pod/b", "service/c>node/n1"]),
        st.sampled_from([FIRST, LATER]),
    ),
    max_size=10,
)
some_zones = st.lists(
    st.sampled_from([PUBLIC, PRIVATE, DEEPER, Zone(name="deep.example.com", id="Z4", private=True)]), unique=True
)


@given(some_asked, some_zones)
def test_every_value_lands_in_a_zone_or_has_a_reason_and_none_in_a_wrong_zone(
    some: list[RequestedValue], zones: list[Zone]
) -> None:
    found = routed(zones, *some, reserved=("api.example.com",))

    assert set(found.wants) == set(zones)
    for zone, wants in found.wants.items():
        for want in wants:
            assert inside(want.name, zone.name)
            assert want.name != "api.example.com"
            assert not any(inside(want.name, other.name) and len(other.name) > len(zone.name) for other in zones)
    explained = {(problem.source, problem.name) for problem in (*found.problems, *found.reserved)}
    there = {(want.name, want.type, want.value) for wants in found.wants.values() for want in wants}
    for one in some:
        has_it = (one.want.name, one.want.type, one.want.value) in there
        assert has_it or (one.source, one.want.name) in explained


@given(some_asked, some_zones)
def test_what_is_internal_is_never_shown_outside_where_there_is_an_inside(
    some: list[RequestedValue], zones: list[Zone]
) -> None:
    found = routed(zones, *some)
    outside = {(one.want.name, one.want.value) for one in some if one.view == "external"}
    for zone, wants in found.wants.items():
        if not zone.private and any(other.private and other.name == zone.name for other in zones):
            assert {(want.name, want.value) for want in wants} <= outside


@given(some_asked, some_zones)
def test_from_inside_every_name_that_stands_outside_has_an_answer_too(
    some: list[RequestedValue], zones: list[Zone]
) -> None:
    found = routed(zones, *some)
    asked_inside = {one.want.name for one in some if one.view == "internal"}
    for zone, wants in found.wants.items():
        for hiding in zones:
            if hiding.private and not zone.private and hiding.name == zone.name:
                within = {want.name for want in found.wants[hiding]}
                assert {want.name for want in wants} <= within | asked_inside
