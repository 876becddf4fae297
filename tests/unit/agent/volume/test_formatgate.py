"""What is done with a volume that is attached and not mounted: a test for each row; a format only with every proof."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.agent import SIZE, a_block, a_device, a_generation, a_volume
from protokube.agent.volume.formatgate import FormatIt, MarkIt, MountIt, Next, next_step, nonce_of, wrong_device
from protokube.host import Content, Probed
from protokube.members.generation import Generation
from protokube.members.start_values import Decision, Join, Refuse, Start, Wait
from protokube.providers.volumes import Volume

FOUND = Start(fresh=True, write_identity=True)
JOIN = Join(remove=1, write_identity=True)
NONCE = "0f0f0f0f-0000-4000-8000-000000000001"
MARKED = f"formatting:{NONCE}"


def step(
    content: Content,
    volume: Volume | None = None,
    generation: Generation | None = None,
    decision: Decision = FOUND,
) -> Next:
    probed = Probed(content=content, description="what was seen")
    return next_step(volume or a_volume(), probed, generation or a_generation(), decision)


def test_an_ext4_is_mounted_whatever_else_is_so_because_it_says_itself_whose_it_is() -> None:
    assert step(Content.EXT4) == MountIt()
    assert step(Content.EXT4, a_volume(mark="formed", epoch=7)) == MountIt()
    assert step(Content.EXT4, decision=Refuse("no")) == MountIt()


def test_a_busy_device_is_waited_for() -> None:
    assert step(Content.BUSY) == Wait("vol-a is in use on this machine: what was seen")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (Content.UNREADABLE, "vol-a cannot be read: what was seen"),
        (Content.FOREIGN, "refusing to format vol-a: it is not blank: what was seen"),
        (Content.DIRTY, "refusing to format vol-a: it has no file system, but it is not blank: what was seen"),
    ],
)
def test_what_is_not_blank_is_refused_and_told(content: Content, says: str) -> None:
    found = step(content)
    assert isinstance(found, Refuse)
    assert found.why == says
    assert "was not touched" in found.hint


def test_a_proven_blank_founder_is_marked_first() -> None:
    assert step(Content.BLANK) == MarkIt()


def test_a_marked_blank_founder_is_formatted_with_the_nonce_of_its_mark() -> None:
    assert step(Content.BLANK, a_volume(mark=MARKED)) == FormatIt(NONCE)


def test_a_format_of_ours_that_was_cut_short_is_finished() -> None:
    assert step(Content.DIRTY, a_volume(mark=MARKED)) == FormatIt(NONCE, again=True)


def test_a_replacement_that_we_made_and_recorded_is_formatted_to_join() -> None:
    closed = a_generation(is_open=False, replacements={"a": "vol-new"})
    assert step(Content.BLANK, a_volume("vol-new"), closed, JOIN) == MarkIt()
    assert step(Content.BLANK, a_volume("vol-new", mark=MARKED), closed, JOIN) == FormatIt(NONCE)


@pytest.mark.parametrize("mark", ["forming", "formed", "something new"])
def test_a_volume_that_was_in_use_and_turns_up_blank_is_shown_to_a_person(mark: str) -> None:
    found = step(Content.BLANK, a_volume(mark=mark))
    assert isinstance(found, Refuse)
    assert found.why == f"vol-a was marked {mark!r} and turns up blank: the data of main/a was lost outside of us"


@pytest.mark.parametrize("held", [{"epoch": 1}, {"last_holder": "i-9"}])
def test_a_volume_that_somebody_held_before_is_not_formatted(held: dict[str, Any]) -> None:
    found = step(Content.BLANK, a_volume(**held))
    assert isinstance(found, Refuse)
    assert "was held before" in found.why


def test_a_volume_of_which_nobody_says_that_it_was_made_empty_is_not_formatted() -> None:
    found = step(Content.BLANK, a_volume(made_empty=False))
    assert found == Refuse("nothing says that vol-a was made empty", "a volume made from a snapshot has content")


def test_a_volume_that_is_not_in_the_record_is_not_formatted() -> None:
    found = step(Content.BLANK, a_volume("vol-z"))
    assert isinstance(found, Refuse)
    assert found.why == "vol-z is not a volume that we made for main/a"


def test_without_a_record_nothing_is_formatted() -> None:
    found = next_step(a_volume(), Probed(content=Content.BLANK, description=""), None, FOUND)
    assert isinstance(found, Refuse)


def test_the_founder_of_another_member_is_not_formatted_for_this_one() -> None:
    assert isinstance(step(Content.BLANK, a_volume("vol-b", member="a")), Refuse)


@pytest.mark.parametrize("decision", [Wait("later"), Refuse("never")])
def test_a_blank_volume_on_which_nothing_could_be_started_is_not_formatted(decision: Decision) -> None:
    assert step(Content.BLANK, decision=decision) == decision
    assert step(Content.BLANK, a_volume(mark=MARKED), decision=decision) == decision


def test_the_nonce_is_what_stands_behind_the_word_formatting() -> None:
    assert nonce_of(MARKED) == NONCE
    assert nonce_of("forming") is None
    assert nonce_of("") is None


marks = st.sampled_from(["", MARKED, "forming", "formed", "formatting", "unknown:word"])
volumes = st.builds(
    lambda named, member, mark, epoch, holder, empty: a_volume(
        named, member=member, mark=mark, epoch=epoch, last_holder=holder, made_empty=empty
    ),
    st.sampled_from(["vol-a", "vol-b", "vol-new"]), st.sampled_from("ab"), marks, st.integers(0, 2),
    st.sampled_from(["", "i-1"]), st.booleans(),
)  # fmt: skip
generations = st.none() | st.builds(
    lambda is_open, replaced: a_generation(is_open=is_open, replacements={"a": "vol-new"} if replaced else {}),
    st.booleans(), st.booleans(),
)  # fmt: skip
decisions = st.sampled_from([FOUND, JOIN, Start(fresh=False), Wait("later"), Refuse("never")])


@given(volumes, st.sampled_from(Content), generations, decisions)
def test_nothing_is_ever_formatted_unless_every_proof_holds(
    volume: Volume, content: Content, generation: Generation | None, decision: Decision
) -> None:
    found = next_step(volume, Probed(content=content, description=""), generation, decision)
    if not isinstance(found, FormatIt | MarkIt):
        return
    assert content is Content.BLANK or (content is Content.DIRTY and volume.mark == MARKED)
    assert volume.mark in ("", MARKED)
    assert volume.made_empty
    assert (volume.epoch, volume.last_holder) == (0, "")
    assert generation is not None
    assert generation.made_by_us(volume.member, volume.id)
    assert isinstance(decision, Start | Join)
    if isinstance(found, FormatIt):
        assert volume.mark == f"formatting:{found.uuid}"
        assert found.again == (content is Content.DIRTY)


def test_a_device_with_the_serial_and_the_size_of_the_volume_is_the_volume() -> None:
    assert wrong_device(a_volume(), a_device(), a_block()) is None


@pytest.mark.parametrize(
    ("serial", "says"), [("vol-x", "its serial is vol-x, not vol-a"), (None, "its serial is unknown, not vol-a")]
)
def test_another_serial_is_another_disk(serial: str | None, says: str) -> None:
    found = wrong_device(a_volume(), a_device(), a_block(serial=serial))
    assert found is not None
    assert says in found.why


def test_where_the_platform_has_no_serials_the_path_is_proof_and_the_size_still_counts() -> None:
    assert wrong_device(a_volume(), a_device(None), a_block(serial=None)) is None
    found = wrong_device(a_volume(), a_device(None), a_block(serial=None, size=SIZE // 2))
    assert found is not None
    assert found.why == f"/dev/sdb has {SIZE // 2} bytes, vol-a has {SIZE}"
