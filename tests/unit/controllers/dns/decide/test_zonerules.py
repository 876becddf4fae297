"""Which zones we manage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.controllers.dns.decide.zonerules import Rule, choose, parse_rules
from protokube.errors import InvalidRequest
from protokube.records.zones import Horizon, Zone

PUBLIC, PRIVATE = Zone(name="example.com", id="Z1"), Zone(name="example.com", id="Z2", private=True)
OTHER = Zone(name="example.org", id="Z3")


@pytest.mark.parametrize(
    ("texts", "rules"),
    [
        ([], [Rule()]),
        ([""], [Rule()]),
        (["*"], [Rule()]),
        (["*/*"], [Rule()]),
        (["example.com"], [Rule("example.com")]),
        (["Example.com."], [Rule("example.com")]),
        (["example.com/*"], [Rule("example.com")]),
        (["*/Z1"], [Rule(id="Z1")]),
        (["example.com/Z1"], [Rule("example.com", "Z1")]),
        (["example.com//hostedzone/Z1", "example.com/hostedzone/Z1"], [Rule("example.com", "Z1")]),
        (["b.com, a.com", "*"], [Rule(), Rule("a.com"), Rule("b.com")]),
    ],
)
def test_a_rule_is_read_as_the_original_reads_it(texts: list[str], rules: list[Rule]) -> None:
    assert list(parse_rules(texts)) == rules


def test_everything_that_is_wrong_with_rules_is_told_at_once() -> None:
    with pytest.raises(InvalidRequest) as why:
        parse_rules(["example.com", "/Z1", "a..b", "*.example.com", "example.com/", "example.com/Z 1"])

    assert why.value.message == "5 zone rules cannot be read"
    assert all(text in why.value.saw for text in ("/Z1", "a..b", "*.example.com", "'example.com/'", "Z 1"))
    assert "'example.com':" not in why.value.saw


@pytest.mark.parametrize("rules", [[], [Rule(id="Z9")]])
def test_a_zone_whose_name_nobody_could_ask_for_is_left_alone_and_told(rules: list[Rule]) -> None:
    """As Route 53 writes `0/26.2.0.192.in-addr.arpa`."""
    odd = Zone(name="0\\05726.2.0.192.in-addr.arpa", id="Z9")
    found = choose([odd, PUBLIC], [Rule("example.com"), *rules] if rules else [])
    assert found.zones == (PUBLIC,)
    ((zone, why),) = found.left
    assert zone == odd
    assert "its name has the label" in why


def test_a_rule_reads_back_as_what_was_written() -> None:
    written = ["*", "*/Z1", "example.com", "example.com/Z1"]

    assert [str(rule) for rule in parse_rules(written)] == written


def test_one_zone_of_a_name_is_managed() -> None:
    assert choose([PUBLIC, OTHER], parse_rules(["example.com"])).horizons == {"example.com": Horizon(public=PUBLIC)}
    assert choose([PRIVATE], parse_rules([])).horizons == {"example.com": Horizon(private=PRIVATE)}


def test_a_public_and_a_private_zone_of_one_name_are_a_split_horizon() -> None:
    managed = choose([PRIVATE, PUBLIC], parse_rules(["example.com"]))

    assert managed.horizons == {"example.com": Horizon(public=PUBLIC, private=PRIVATE)}
    assert managed.zones == (PUBLIC, PRIVATE)


def test_a_zone_that_a_rule_names_wins_over_its_likes_under_a_wildcard() -> None:
    managed = choose([PUBLIC, PRIVATE, OTHER], parse_rules(["*/*", "example.com/Z2"]))

    assert managed.horizons == {"example.com": Horizon(private=PRIVATE), "example.org": Horizon(public=OTHER)}
    assert managed.left == ((PUBLIC, "another zone of that name is named by a rule"),)


def test_a_rule_whose_name_fits_and_whose_id_does_not_leaves_it_to_the_others() -> None:
    """The original stopped there and tried no other rule."""
    managed = choose([PUBLIC], parse_rules(["example.com/ELSEWHERE", "example.com/Z1"]))

    assert managed.horizons == {"example.com": Horizon(public=PUBLIC)}


def test_an_id_with_the_prefix_of_its_provider_is_the_same_id() -> None:
    zone = Zone(name="example.com", id="/hostedzone/Z1")

    assert choose([zone], parse_rules(["example.com/Z1"])).zones == (zone,)


def test_two_public_zones_of_one_name_are_left_alone_and_their_ids_told() -> None:
    twin = Zone(name="example.com", id="Z9")
    managed = choose([PUBLIC, twin, PRIVATE], parse_rules(["*"]))

    assert managed.horizons == {}
    assert {zone for zone, _ in managed.left} == {PUBLIC, twin, PRIVATE}
    why = "example.com is 2 public zones (Z1, Z9) and 1 private zone (Z2)"
    assert all(reason.startswith(why) and "example.com/Z1" in reason for _, reason in managed.left)


def test_what_no_rule_covers_is_left_alone() -> None:
    assert choose([OTHER], parse_rules(["example.com"])).left == ((OTHER, "no rule covers it"),)


zone_names, ids = st.sampled_from(["a.com", "b.com", "x.a.com"]), st.sampled_from(["1", "2", "3", "4"])
zones = st.lists(
    st.builds(Zone, name=zone_names, id=ids, private=st.booleans()), max_size=6, unique_by=lambda zone: zone.id
)
rules = st.lists(st.builds(Rule, st.one_of(st.just(""), zone_names), st.one_of(st.just(""), ids)), max_size=4)


@given(zones, rules)
def test_every_zone_is_either_managed_or_left_with_a_reason(some: list[Zone], rules: list[Rule]) -> None:
    managed = choose(some, rules)
    left = [zone for zone, _ in managed.left]

    assert sorted([*managed.zones, *left]) == sorted(some)
    assert all(why for _, why in managed.left)


@given(zones, rules)
def test_what_is_managed_is_covered_and_clear(some: list[Zone], rules: list[Rule]) -> None:
    named = [zone for zone in some if any(rule.covers(zone) for rule in rules if not rule.wildcard)]
    for zone in choose(some, rules).zones:
        alike = [other for other in some if (other.name, other.private) == (zone.name, zone.private)]
        if zone in named:
            assert [other for other in alike if other in named] == [zone]
        else:
            assert alike == [zone]
            assert zone.name not in {other.name for other in named}
            assert not rules or Rule() in rules


@given(zones, rules, st.randoms(use_true_random=False))
def test_the_order_of_zones_and_of_rules_does_not_matter(
    some: list[Zone], rules: list[Rule], chance: st.DataObject
) -> None:
    before = choose(some, rules)
    chance.shuffle(some)  # type: ignore[attr-defined]
    chance.shuffle(rules)  # type: ignore[attr-defined]

    assert (choose(some, rules).horizons, choose(some, rules).left) == (before.horizons, before.left)


@given(st.lists(st.text(max_size=12), max_size=3))
def test_whatever_is_written_rules_are_read_or_refused_in_words(texts: list[str]) -> None:
    try:
        read = parse_rules(texts)
    except InvalidRequest as refused:
        outcome = refused.saw
    else:
        outcome = "read" if parse_rules([str(rule) for rule in read]) == read else ""
    assert outcome
