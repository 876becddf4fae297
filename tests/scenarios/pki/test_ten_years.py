"""Ten years of simulated time without an operator, for any lifetime, number of members and clock skew."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.errors import Refused
from protokube.pki import expiry
from protokube.pki.authority import make_authority
from protokube.pki.check import judge
from protokube.pki.files import sync_certificates
from protokube.pki.issue import issue
from protokube.pki.renewal import DAY, HOUR, Life, Place, Stage, due_left, look_every, may_renew, slot_of, stage
from unit.pki.builders import NOW, a_wanted, authorities, parsed

pytestmark = pytest.mark.usefixtures("unmeasured")

YEAR = 365 * DAY
TEN_YEARS = 10 * YEAR


@dataclass(frozen=True)
class Renewal:
    """One certificate replaced by the next."""

    at: float
    member: int
    slot: int
    """As the member's own clock counts them."""
    was: Stage


def lived(seed: int, length: float, count: int, span: float) -> list[Renewal]:
    """Every renewal in a span of time. All begin at once, as in a bring-up; each looks as often as an agent does.

    Clocks of members differ by up to a quarter of a slot, one way or the other.
    """
    random, slot = Random(seed), slot_of(length, count)
    off = [random.uniform(-slot / 4, slot / 4) for _ in range(count)]
    found = []
    for member in range(count):
        now = NOW + off[member] + random.uniform(0, length / 1000)
        end, life = now + span, Life(now - DAY, now + length, length)
        while now < end:
            if may_renew(life, now, Place(member, count)):
                found.append(Renewal(now - off[member], member, int(now // slot), stage(life, now)))
                life = Life(now - DAY, now + length, length)
            elif stage(life, now) is Stage.FRESH:  # so it stays until it is due; no need to check more often
                now = max(now, life.end - length * due_left(length) - look_every(length) * random.random())
            now += look_every(length) * random.uniform(0.3, 1)
    return sorted(found, key=lambda each: each.at)


LENGTHS = st.one_of(st.sampled_from([60.0, HOUR, DAY, 7 * DAY, YEAR]), st.floats(60.0, 2 * YEAR))


@given(seed=st.integers(0, 2**32), length=LENGTHS, count=st.integers(1, 9))
@example(seed=0, length=60.0, count=9)
@example(seed=0, length=7 * DAY - 1, count=9)
@example(seed=0, length=YEAR, count=3)
@examples(40)
def test_nothing_ever_gets_old_and_no_two_members_change_in_one_slot(seed: int, length: float, count: int) -> None:
    renewals = lived(seed, length, count, min(TEN_YEARS, 40 * length))

    assert {each.was for each in renewals} == {Stage.DUE}, "each had its turn before it was overdue"
    assert {each.member for each in renewals} == set(range(count))
    for one, other in pairwise(renewals):
        assert one.member == other.member or one.slot != other.slot


@given(length=LENGTHS, count=st.integers(2, 9), offset=st.floats(0, 1))
@examples(60)
def test_while_it_is_due_every_member_has_half_a_slot_that_an_agent_cannot_miss(
    length: float, count: int, offset: float
) -> None:
    life = Life(NOW - DAY, NOW + length * (1 + offset), length)
    step = max(look_every(length) * 0.999, slot_of(length, count) / 8)
    for member in range(count):
        now, turns = life.end - length * due_left(length) + 0.001, 0
        while stage(life, now) is Stage.DUE:
            turns += may_renew(life, now, Place(member, count))
            now += step
        assert turns, f"member {member} of {count}"


@pytest.mark.parametrize("lifetime", [90 * DAY, YEAR, 5 * YEAR])
def test_real_certificates_of_three_masters_for_ten_years_and_then_words(tmp_path: Path, lifetime: float) -> None:
    """Checked every five days: nothing is invalid before the authority itself expires, after a year of warnings."""
    signers = authorities("etcd-peer-ca", now=NOW)
    end = parsed(signers["etcd-peer-ca"].certificate).not_valid_after_utc.timestamp()
    wanted = {"etcd-a-peer": a_wanted()}
    warned: list[float] = []
    issued = 0
    for day in range(0, 3650, 5):
        now = NOW + day * DAY
        for index in range(3):
            folder = tmp_path / str(index)
            issued += len(sync_certificates(folder, wanted, signers, now, Place(index, 3), lifetime))
            made = parsed((folder / "etcd-a-peer.crt").read_bytes())
            assert made.not_valid_before_utc.timestamp() <= now < made.not_valid_after_utc.timestamp() <= end
        if expiry.words("etcd-peer-ca", expiry.ends(tmp_path / "0", signers)["etcd-peer-ca"], now):
            warned.append(now)

    assert warned == [NOW + day * DAY for day in range(3285, 3650, 5)]
    assert issued < 3 * (1 + 3 * TEN_YEARS / lifetime), "near the end of the authority nothing is issued over and over"
    with pytest.raises(Refused, match="cannot sign now"):
        issue(wanted["etcd-a-peer"], signers["etcd-peer-ca"], end + 1)


def test_what_ends_with_its_authority_is_good_until_then() -> None:
    authority = make_authority("etcd-peer-ca", NOW)
    end = parsed(authority.certificate).not_valid_after_utc.timestamp()
    last = issue(a_wanted(), authority, end - 30 * DAY)
    pair = (last.certificate, last.key)

    assert judge(pair, a_wanted(), authority.certificate, end - 60, Place()).why == ""
    assert judge(pair, a_wanted(), authority.certificate, end, Place()).why == "it was expired"


@pytest.mark.parametrize(
    ("days", "says"),
    [
        (366, ""),
        (365, "the authority etcd-peer-ca ends in 365 days"),
        (30.5, "the authority etcd-peer-ca ends in 30 days"),
        (0, "the authority etcd-peer-ca has ended, and so has everything it signed"),
    ],
)
def test_the_end_of_an_authority_is_told_a_year_ahead(days: float, says: str) -> None:
    assert expiry.words("etcd-peer-ca", NOW + days * DAY, NOW) == says


def test_an_authority_that_is_not_here_or_cannot_be_read_has_no_end_yet(tmp_path: Path) -> None:
    (tmp_path / "broken.crt").write_text("garbage")
    (tmp_path / "folder.crt").mkdir()

    assert expiry.ends(tmp_path, ["absent", "broken", "folder"]) == {}
