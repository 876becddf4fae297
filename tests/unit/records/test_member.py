"""Who owns a member's name, and who may write it."""

from __future__ import annotations

import pytest

from protokube.errors import Refused
from protokube.records import Change, Record
from protokube.records.member import (
    TTL,
    Claim,
    MemberPlan,
    Publish,
    Refuse,
    Settled,
    Yield,
    parse_claim,
    plan_member,
    read_claim,
)
from protokube.records.names import make_record

NAME = "etcd-a.internal.dev"
OLD, NEW, SIX = "10.0.0.1", "10.0.0.2", "2001:db8::2"


def an_address(*addresses: str, ttl: int = TTL) -> Record:
    return make_record(NAME, "AAAA" if ":" in addresses[0] else "A", addresses, ttl)


def a_text(*texts: str, ttl: int = TTL) -> Record:
    return make_record(NAME, "TXT", texts, ttl)


def claim(epoch: int, holder: str) -> str:
    return f"protokube epoch={epoch} holder={holder}"


def planned(*observed: Record, address: str = NEW, epoch: int = 3, adopt: bool = False) -> MemberPlan:
    return plan_member(observed, NAME, address, epoch, "i-new", adopt=adopt)


def changes(plan: MemberPlan) -> list[tuple[Record | None, Record | None]]:
    assert isinstance(plan, Publish), plan
    return [(change.before, change.after) for change in plan.changes]


OURS = (an_address(NEW), a_text(claim(3, "i-new")))


def test_a_name_nobody_has_is_published_with_our_claim() -> None:
    assert changes(planned()) == [(None, an_address(NEW)), (None, a_text("protokube epoch=3 holder=i-new"))]


def test_an_address_of_the_other_family_gets_the_other_type() -> None:
    assert changes(planned(address=SIX)) == [(None, an_address(SIX)), (None, a_text(claim(3, "i-new")))]


def test_the_ttl_is_short_enough_to_heal_by() -> None:
    plan = planned()

    assert isinstance(plan, Publish)
    assert all(change.after and change.after.ttl <= 10 for change in plan.changes)


def test_a_name_that_points_at_us_and_says_so_is_settled() -> None:
    assert planned(*OURS) == Settled()


def test_a_provider_that_keeps_another_short_ttl_is_not_written_to_for_ever() -> None:
    assert planned(an_address(NEW, ttl=10), a_text(claim(3, "i-new"), ttl=1)) == Settled()


def test_a_long_ttl_is_shortened() -> None:
    slow = (an_address(NEW, ttl=300), a_text(claim(3, "i-new"), ttl=300))

    assert changes(planned(*slow)) == [(slow[0], OURS[0]), (slow[1], OURS[1])]


def test_a_lower_epoch_is_taken_over_in_a_batch_that_compares_with_what_was_seen() -> None:
    old = (an_address(OLD), a_text(claim(2, "i-old")))

    assert changes(planned(*old)) == [(old[0], OURS[0]), (old[1], OURS[1])]


def test_a_higher_epoch_is_never_overwritten_and_its_holder_is_named() -> None:
    plan = planned(an_address(OLD), a_text(claim(4, "i-old")))

    assert plan == Yield(Claim(epoch=4, holder="i-old"), "etcd-a.internal.dev is held by i-old with epoch 4, ours is 3")


@pytest.mark.parametrize("adopt", [False, True])
def test_not_even_our_own_higher_epoch_is_overwritten(adopt: bool) -> None:
    assert isinstance(planned(an_address(NEW), a_text(claim(4, "i-new")), adopt=adopt), Yield)


@pytest.mark.parametrize("adopt", [False, True])
def test_our_epoch_with_another_holder_is_refused_and_explained(adopt: bool) -> None:
    plan = planned(an_address(OLD), a_text(claim(3, "i-old")), adopt=adopt)

    assert isinstance(plan, Refuse)
    assert "i-old" in plan.why
    assert "epoch 3" in plan.why
    assert "take it over anew" in plan.hint


def test_a_machine_that_got_another_address_moves_its_name_and_still_compares_its_claim() -> None:
    observed = (an_address(OLD), OURS[1])

    assert changes(planned(*observed)) == [(observed[0], OURS[0]), (OURS[1], OURS[1])]


def test_the_guard_says_that_it_is_one() -> None:
    plan = planned(an_address(OLD), OURS[1])

    assert isinstance(plan, Publish)
    assert plan.changes[1].why == "guards the others; i-new holds it, epoch 3"


@pytest.mark.parametrize("adopt", [False, True])
def test_an_alias_is_never_overwritten_not_even_to_adopt_it(adopt: bool) -> None:
    plan = planned(make_record("etcd-a.internal.dev", "CNAME", ["b.dev"], 5), adopt=adopt)

    assert isinstance(plan, Refuse)
    assert "alias of b.dev (CNAME)" in plan.why


def test_an_address_that_went_missing_is_put_back() -> None:
    assert changes(planned(OURS[1])) == [(None, OURS[0]), (OURS[1], OURS[1])]


def test_an_address_of_the_other_family_that_an_earlier_holder_left_goes_away() -> None:
    observed = (an_address("2001:db8::1"), a_text(claim(2, "i-old")))

    assert changes(planned(*observed)) == [
        (None, OURS[0]),
        (observed[0], None),
        (observed[1], OURS[1]),
    ]


def test_a_record_that_nobody_claims_is_not_overwritten() -> None:
    plan = planned(an_address(OLD))

    assert isinstance(plan, Refuse)
    assert plan.why == "etcd-a.internal.dev exists without a claim: A 10.0.0.1"
    assert "adopt" in plan.hint


def test_a_record_that_nobody_claims_can_be_adopted() -> None:
    assert changes(planned(an_address(OLD), adopt=True)) == [(an_address(OLD), OURS[0]), (None, OURS[1])]


@pytest.mark.parametrize(
    "text",
    [
        "v=spf1 -all",
        "protokube epoch=-1 holder=i-old",
        "protokube epoch=02 holder=i-old",
        "protokube epoch=2 holder=",
        "protokube epoch=2 holder=i old",
        "protokube epoch=2  holder=i-old",
        "Protokube epoch=2 holder=i-old",
        "protokube epoch=2 holder=i-old\n",
        "protokube epoch=٣ holder=i-old",
        "protokube epoch=" + "9" * 19 + " holder=i-old",
        "",
        "\udcff",
    ],
)
def test_a_text_that_cannot_be_read_stops_us_unless_it_is_adopted(text: str) -> None:
    observed = (an_address(OLD), a_text(text))

    refused = planned(*observed)

    assert parse_claim(text) is None
    assert isinstance(refused, Refuse)
    assert refused.why.isprintable()
    assert changes(planned(*observed, adopt=True)) == [(observed[0], OURS[0]), (observed[1], OURS[1])]


def test_a_readable_claim_among_strange_texts_is_honoured_even_if_we_may_adopt() -> None:
    observed = (an_address(OLD), a_text("strange", claim(4, "i-old"), claim(2, "i-older")))

    assert isinstance(planned(*observed), Yield)
    assert isinstance(planned(*observed, adopt=True), Yield)


def test_of_several_claims_with_our_epoch_another_holders_counts() -> None:
    for other in ("a-sorts-before-us", "z-sorts-after-us"):
        assert isinstance(planned(an_address(OLD), a_text(claim(3, other), claim(3, "i-new"))), Refuse)


def test_several_lower_claims_are_replaced_by_ours() -> None:
    observed = (an_address(OLD), a_text(claim(1, "i-1"), claim(2, "i-2")))

    assert changes(planned(*observed)) == [(observed[0], OURS[0]), (observed[1], OURS[1])]


def test_records_of_other_names_say_nothing() -> None:
    other = make_record("etcd-b.internal.dev", "TXT", [claim(9, "i-old")], TTL)

    assert planned(other, *OURS) == Settled()


def test_the_name_may_be_written_in_any_way() -> None:
    assert plan_member(OURS, "ETCD-A.internal.dev.", NEW, 3, "i-new") == Settled()


@pytest.mark.parametrize(
    ("name", "address", "epoch", "holder"),
    [
        ("etcd a.dev", NEW, 3, "i-new"),
        (NAME, "0.0.0.0", 3, "i-new"),
        (NAME, "example", 3, "i-new"),
        (NAME, NEW, -1, "i-new"),
        (NAME, NEW, 3, ""),
        (NAME, NEW, 3, "i new"),
        (NAME, NEW, 3, "i-nüw"),
    ],
)
def test_what_could_not_be_read_back_is_never_planned(name: str, address: str, epoch: int, holder: str) -> None:
    with pytest.raises(Refused):
        plan_member((), name, address, epoch, holder)


def test_who_holds_a_name_can_be_asked() -> None:
    assert read_claim(OURS, NAME) == Claim(epoch=3, holder="i-new")
    assert read_claim([an_address(OLD)], NAME) is None
    assert read_claim([a_text("junk", claim(1, "i-1"), claim(2, "i-2"))], NAME) == Claim(epoch=2, holder="i-2")


def test_a_plan_prints_what_it_does() -> None:
    plan = planned()

    assert isinstance(plan, Publish)
    assert str(plan.changes[0]) == "etcd-a.internal.dev A: nothing -> 10.0.0.2 (i-new holds it, epoch 3)"


def test_a_change_has_the_key_of_what_it_changes() -> None:
    assert Change(before=OURS[0], after=None, why="").key == (NAME, "A")
    assert Change(before=None, after=OURS[1], why="").key == (NAME, "TXT")
