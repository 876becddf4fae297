"""Which zone a name lies in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protokube.records.names import inside
from protokube.records.zones import Horizon, Zone, horizon_of

MANAGED = {name: Horizon(public=Zone(name=name, id=name)) for name in ("example.com", "a.example.com", "com")}


def zone_of(name: str) -> str:
    found = horizon_of(name, MANAGED)
    return found.zones[0].name if found else ""


def test_a_name_lies_in_the_zone_with_the_longest_ending() -> None:
    assert zone_of("x.a.example.com") == "a.example.com"
    assert zone_of("x.b.example.com") == "example.com"
    assert zone_of("*.a.example.com") == "a.example.com"
    assert zone_of("xa.example.com") == "example.com"
    assert zone_of("example.com") == "example.com"


def test_a_name_outside_every_zone_lies_nowhere() -> None:
    assert zone_of("example.org") == ""
    assert zone_of("notcom") == ""


def test_a_zone_says_what_it_is() -> None:
    assert str(Zone(name="example.com", id="Z1", private=True)) == "example.com (private, Z1)"


@given(st.lists(st.sampled_from(["a", "b", "example", "com"]), min_size=1, max_size=5).map(".".join))
def test_no_longer_zone_holds_the_name(name: str) -> None:
    holding = [zone for zone in MANAGED if inside(name, zone)]

    assert zone_of(name) == max(holding, key=len, default="")
