"""Conflicts: which objects get a name that not all can share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders.dns_objects import FIRST, LATER, lines
from protokube.controllers.dns.decide.desired import RequestedValue
from protokube.controllers.dns.decide.settle import settle
from protokube.records.owners import Want


def asked(by: str, value: str, created: str = FIRST, name: str = "a.example.com") -> RequestedValue:
    kind = "CNAME" if value.endswith("net") else "AAAA" if ":" in value else "A"
    return RequestedValue(Want(name=name, type=kind, value=value, by=by), "external", created)


def test_addresses_of_many_objects_stand_side_by_side() -> None:
    wants, problems = settle([asked("pod/b", "10.0.0.2"), asked("pod/a", "10.0.0.1"), asked("pod/c", "fd00::1")])

    assert lines(wants) == [
        "a.example.com A 10.0.0.1 pod/a",
        "a.example.com A 10.0.0.2 pod/b",
        "a.example.com AAAA fd00::1 pod/c",
    ]
    assert problems == ()


def test_one_value_asked_for_by_many_is_put_down_to_the_one_that_was_there_first() -> None:
    """A newer object changes nothing, so nothing has to be written."""
    before, _ = settle([asked("pod/m", "10.0.0.1", FIRST)])
    after, _ = settle([asked("pod/a", "10.0.0.1", LATER), asked("pod/m", "10.0.0.1", FIRST)])

    assert before == after
    assert lines(after) == ["a.example.com A 10.0.0.1 pod/m"]


def test_of_equally_old_objects_the_smaller_key_is_put_down() -> None:
    wants, _ = settle([asked("pod/b", "10.0.0.1"), asked("pod/a", "10.0.0.1")])

    assert lines(wants) == ["a.example.com A 10.0.0.1 pod/a"]


def test_addresses_that_were_there_first_keep_the_name_from_a_cname() -> None:
    wants, problems = settle([asked("service/x", "lb.example.net", LATER), asked("pod/y", "10.0.0.1", FIRST)])

    assert lines(wants) == ["a.example.com A 10.0.0.1 pod/y"]
    (problem,) = problems
    assert (problem.source, problem.name) == ("service/x", "a.example.com")
    assert "pod/y was there first" in problem.why


def test_a_cname_that_was_there_first_keeps_the_name_from_all_others() -> None:
    rivals = [asked("pod/a", "10.0.0.1", LATER), asked("service/b", "other.example.net", LATER)]
    wants, problems = settle([*rivals, asked("service/z", "lb.example.net", FIRST)])

    assert lines(wants) == ["a.example.com CNAME lb.example.net service/z"]
    assert [problem.source for problem in problems] == ["pod/a", "service/b"]


def test_the_same_cname_from_two_objects_is_no_conflict() -> None:
    wants, problems = settle([asked("service/a", "lb.example.net", LATER), asked("service/b", "lb.example.net", FIRST)])

    assert lines(wants) == ["a.example.com CNAME lb.example.net service/b"]
    assert problems == ()


def test_of_two_host_names_of_one_balancer_the_smaller_one_is_taken() -> None:
    wants, problems = settle([asked("service/a", "y.example.net"), asked("service/a", "x.example.net")])

    assert lines(wants) == ["a.example.com CNAME x.example.net service/a"]
    assert len(problems) == 1


def test_no_cname_stands_at_the_top_of_a_zone() -> None:
    rivals = [asked("service/a", "lb.example.net", FIRST), asked("pod/b", "10.0.0.1", LATER)]
    wants, problems = settle(rivals, top="a.example.com")

    assert lines(wants) == ["a.example.com A 10.0.0.1 pod/b"]
    assert [(problem.source, "top of a zone" in problem.why) for problem in problems] == [("service/a", True)]


everything = st.lists(
    st.builds(
        asked,
        st.sampled_from(["pod/a", "pod/b", "service/c", "service/c>node/n1", "service/c>node/n2"]),
        st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1", "x.example.net", "y.example.net"]),
        st.sampled_from([FIRST, LATER]),
        st.sampled_from(["a.example.com", "b.example.com"]),
    )
)


@given(everything, st.sampled_from(["", "a.example.com"]))
def test_whatever_is_asked_for_what_comes_out_can_stand(rivals: list[RequestedValue], top: str) -> None:
    wants, problems = settle(rivals, top=top)

    values = [(want.name, want.type, want.value) for want in wants]
    assert values == sorted(set(values))
    for name in {want.name for want in wants}:
        types = [want.type for want in wants if want.name == name]
        assert "CNAME" not in types or (types == ["CNAME"] and name != top)
    given_up = {(problem.source, problem.name) for problem in problems}
    for one in rivals:
        has_it = (one.want.name, one.want.type, one.want.value) in values
        assert has_it or (one.source, one.want.name) in given_up


@given(everything)
def test_the_eldest_of_every_name_has_its_way(rivals: list[RequestedValue]) -> None:
    wants, problems = settle(rivals)

    for name in {one.want.name for one in rivals}:
        eldest = min((one for one in rivals if one.want.name == name), key=lambda one: (one.created, one.source))
        assert any(want.name == name and want.by.startswith(eldest.source) for want in wants)
    assert bool(problems) == (
        {one.want.name: 0 for one in rivals}.keys()
        != {name for name in {one.want.name for one in rivals} if _can_all_stand(rivals, name)}
    )


@given(everything, everything)
def test_who_comes_later_takes_nothing_from_who_was_there(
    rivals: list[RequestedValue], more: list[RequestedValue]
) -> None:
    there = [RequestedValue(one.want, one.view, FIRST) for one in rivals]
    newcomers = [RequestedValue(one.want, one.view, LATER) for one in more]

    assert set(settle(there)[0]) <= set(settle([*there, *newcomers])[0])


def _can_all_stand(rivals: list[RequestedValue], name: str) -> bool:
    values = {(one.want.type, one.want.value) for one in rivals if one.want.name == name}
    return len(values) == 1 or all(kind != "CNAME" for kind, _ in values)
