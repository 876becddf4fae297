"""What to do with etcd on a mounted volume: a test for each row of the table, in its words, and the rules around."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from protokube.members.generation import Generation
from protokube.members.identity import Identity, Unreadable
from protokube.members.start import decide_start
from protokube.members.start_values import Data, Join, Kind, Listed, Refuse, Seen, Start, Wait
from unit.members.worlds import (
    AHEAD,
    LATE,
    OLDER,
    QUORUM,
    B,
    C,
    a_blank,
    a_generation,
    a_member,
    a_mounted,
    an_identity,
    just_mounted,
)

OPEN, CLOSED = a_generation(is_open=True), a_generation()
REPLACED = a_generation(replacements={"a": "vol-a2"})
GROWN = a_generation(replacements={"d": "vol-d"})


def ours(
    data: Data,
    generation: Generation | None = CLOSED,
    *,
    mark: str | None = "formed",
    members: tuple[Listed, ...] | None = None,
    siblings: tuple[str, ...] | None = (),
) -> Seen:
    return a_mounted(
        identity=an_identity(), data=data, generation=generation, mark=mark, members=members, siblings=siblings
    )


def refusal(seen: Seen) -> Refuse:
    decision = decide_start(seen)
    assert isinstance(decision, Refuse), decision
    return decision


def waiting(seen: Seen) -> Wait:
    decision = decide_start(seen)
    assert isinstance(decision, Wait), decision
    return decision


# ours, data present


@pytest.mark.parametrize("members", [None, QUORUM, LATE, (B, C)], ids=["no quorum", "listed", "late", "not listed"])
@pytest.mark.parametrize("generation", [None, OPEN, CLOSED], ids=["unreadable", "open", "closed"])
def test_a_verified_mount_of_ours_goes_on_with_its_data_whatever_else_is_seen(
    generation: Generation | None, members: tuple[Listed, ...] | None
) -> None:
    for mark in (None, "", "forming", "formed"):
        for siblings in (None, (), ("vol-x",)):
            seen = ours(Data.PRESENT, generation, mark=mark, members=members, siblings=siblings)
            for older in (None, OLDER):
                assert decide_start(replace(seen, verified=True, older=older)) == Start(fresh=False)


@pytest.mark.parametrize("members", [None, QUORUM, LATE], ids=["no quorum", "listed", "late"])
@pytest.mark.parametrize("generation", [None, OPEN, CLOSED], ids=["unreadable", "open", "closed"])
def test_a_disk_that_is_not_behind_its_records_goes_on_with_its_data(
    generation: Generation | None, members: tuple[Listed, ...] | None
) -> None:
    for mark in (None, "", "forming", "formed"):
        for siblings in (None, (), ("vol-x",)):
            for majority in (None, AHEAD):
                seen = just_mounted(
                    generation=generation, members=members, mark=mark, siblings=siblings, majority=majority
                )
                unknown = generation is None and members is None and siblings
                assert isinstance(decide_start(seen), Wait) if unknown else decide_start(seen) == Start(fresh=False)


def test_of_several_disks_of_a_member_none_starts_while_neither_the_record_nor_a_quorum_names_its_home() -> None:
    """One may be superseded: two such disks would bring an old cluster back beside the new one."""
    seen = just_mounted(generation=None, members=None, siblings=("vol-x",))
    assert decide_start(seen) == Wait(
        "main/a has several volumes, vol-a, vol-x, and neither the record nor a quorum says which is its home"
    )
    assert isinstance(decide_start(replace(seen, older=OLDER, accepted=True)), Wait)
    assert decide_start(replace(seen, verified=True)) == Start(fresh=False)


# ours, an older copy


def test_an_older_copy_is_set_aside_where_the_others_prove_that_they_have_everything() -> None:
    assert decide_start(just_mounted(older=OLDER, majority=AHEAD)) == Join(remove=1, move_aside=True, older=OLDER)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"majority": None}, "no majority of the other voters"),
        ({"majority": replace(AHEAD, term=3)}, "of an earlier term"),
        ({"majority": replace(AHEAD, commit=999)}, "have committed less"),
        ({"agreed": False}, "do not agree with each other"),
        ({"generation": None}, "does not say that the cluster is formed"),
        ({"generation": OPEN}, "does not say that the cluster is formed"),
        ({"rejoined": True}, "was set aside once already"),
        ({"members": None}, "etcd does not list its member id under this name"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_an_older_copy_is_a_persons_without_that_proof_and_both_figures_are_shown(
    found: dict[str, Any], why: str
) -> None:
    decision = refusal(just_mounted(**{"older": OLDER, "majority": AHEAD, **found}))

    assert decision.kind is Kind.OLDER
    assert why in decision.why
    assert "the disk has epoch 3, term 4, commit 900; recorded are epoch 5, term 4, commit 1000" in decision.why
    assert "protokube etcd accept vol-a --older --epoch 3 --term 4 --commit 900" in decision.hint


def test_an_older_copy_removes_no_member_whose_data_it_is_not() -> None:
    """The list has the id of this log under another peer URL, and another id under ours."""
    members = (a_member("a", 7), a_member("b", 1), C)

    assert refusal(just_mounted(older=OLDER, majority=AHEAD, members=members)).kind is Kind.OLDER


def test_an_older_copy_that_a_person_accepted_starts_with_or_without_the_others() -> None:
    for majority in (None, AHEAD):
        for members in (None, QUORUM):
            seen = just_mounted(older=OLDER, accepted=True, majority=majority, members=members)
            assert decide_start(seen) == Start(fresh=False, accepted=True)


def test_a_disk_whose_member_was_replaced_is_superseded() -> None:
    members = (a_member("a", 9), B, C)
    for older in (None, OLDER):
        decision = refusal(just_mounted(members=members, majority=AHEAD, older=older, accepted=True))

        assert decision.kind is Kind.SUPERSEDED
        assert decision.why == "vol-a is superseded: its member 1 was replaced by 9"
        assert decision.hint == "vol-a is kept as it is; delete it once nobody needs its data"


def test_a_disk_whose_member_was_removed_and_may_not_rejoin_is_a_persons() -> None:
    for older, why in ((None, "and maintenance.rejoinRemoved is off"), (OLDER, "is an older copy of its disk")):
        decision = refusal(just_mounted(members=(B, C), majority=AHEAD, older=older, accepted=True))

        assert decision.kind is Kind.REMOVED
        assert decision.why.startswith("member 1 of main/a was removed from etcd's member list, and ")
        assert why in decision.why
        assert "delete vol-a" in decision.hint


def test_a_copy_of_a_disk_whose_member_runs_elsewhere_is_a_clone_and_changes_no_member() -> None:
    for older in (None, OLDER):
        decision = refusal(just_mounted(answers_elsewhere=True, majority=AHEAD, older=older, accepted=True))

        assert decision.kind is Kind.CLONE
        assert decision.why == "member 1 of main/a runs elsewhere: vol-a is a copy of its disk"
        assert decision.hint == "detach vol-a; the running member was left alone"


def test_a_disk_that_names_another_volume_is_a_clone_whatever_else_is_seen() -> None:
    for majority, members in ((None, None), (AHEAD, QUORUM)):
        seen = just_mounted(identity=an_identity(volume="vol-x"), majority=majority, members=members, older=OLDER)
        assert refusal(seen).kind is Kind.CLONE


def test_data_of_another_etcd_cluster_is_refused_naming_both() -> None:
    for older in (None, OLDER):
        decision = refusal(just_mounted(majority=replace(AHEAD, cluster_id=0xC2), older=older, accepted=True))

        assert decision.kind is Kind.OTHER
        assert decision.why == "vol-a holds data of etcd cluster c1, the members of main are of c2"


def test_a_log_that_cannot_be_read_is_refused_with_the_reason() -> None:
    for majority, members in ((None, None), (AHEAD, QUORUM)):
        decision = refusal(
            just_mounted(position=None, unreadable_log="no segment begins", majority=majority, members=members)
        )

        assert decision.why == "etcd's log on vol-a cannot be read: no segment begins"
        assert decision.hint


def test_a_volume_that_a_restore_left_behind_does_not_bring_the_old_cluster_back() -> None:
    decision = refusal(ours(Data.PRESENT, a_generation(named="g2")))

    assert decision.why == "vol-a is of generation 'g1', main/a is of 'g2' now"
    assert decision.hint


# founders of an open generation


def test_a_crash_between_identity_and_first_start_is_nothing() -> None:
    assert decide_start(ours(Data.MISSING, OPEN, mark="forming")) == Start(fresh=True)


def test_a_blank_founder_of_an_open_generation_writes_its_identity_and_starts_new() -> None:
    assert decide_start(a_blank(generation=OPEN)) == Start(fresh=True, write_identity=True)


def test_a_founder_killed_while_formatting_starts_new() -> None:
    assert decide_start(a_blank(generation=OPEN, mark="formatting:5f1c")) == Start(fresh=True, write_identity=True)


def test_founding_waits_neither_for_a_list_of_volumes_nor_for_the_others() -> None:
    assert decide_start(a_blank(generation=OPEN, siblings=None)) == Start(fresh=True, write_identity=True)


def test_a_replacement_never_founds_even_while_creation_is_open() -> None:
    seen = a_blank(generation=a_generation(is_open=True, replacements={"a": "vol-a2"}), volume="vol-a2")

    assert isinstance(decide_start(seen), Wait)


def test_a_volume_nobody_made_never_founds_even_while_creation_is_open() -> None:
    assert refusal(a_blank(generation=OPEN, volume="vol-x")).why == "vol-x is not a volume that we made for main/a"


def test_a_founder_of_another_member_does_not_found() -> None:
    assert "vol-b" in refusal(a_blank(generation=OPEN, volume="vol-b")).why


def test_the_record_of_another_etcd_cluster_opens_nothing() -> None:
    of_events = a_generation(is_open=True, etcd_cluster="events")

    refusal(a_blank(generation=of_events))
    refusal(ours(Data.MISSING, of_events, mark="forming"))


def test_an_identity_of_another_generation_founds_nothing_and_joins_nothing() -> None:
    for members in (None, QUORUM, LATE):
        refusal(ours(Data.MISSING, a_generation(is_open=True, named="g2"), mark="forming", members=members))


def test_a_member_that_a_quorum_has_seen_started_does_not_found_again_while_creation_is_open() -> None:
    assert decide_start(ours(Data.MISSING, OPEN, mark="forming", members=QUORUM)) == Join(remove=1, move_aside=True)
    assert decide_start(a_blank(generation=OPEN, members=QUORUM)) == Join(remove=1, write_identity=True)


# the provider's word


def test_a_provider_that_does_not_answer_never_means_open() -> None:
    waiting(a_blank(generation=OPEN, mark=None))
    refusal(ours(Data.MISSING, OPEN, mark=None))


def test_a_blank_disk_waits_for_the_provider_to_say_what_was_on_it_before_it_joins() -> None:
    decision = waiting(a_blank(generation=CLOSED, mark=None, members=QUORUM))

    assert decision.why == "the provider did not say whether anything was on vol-a before"


@pytest.mark.parametrize("mark", ["forming", "formed", "Formed", "?"])
@pytest.mark.parametrize("members", [None, QUORUM, LATE], ids=["no quorum", "listed", "late"])
@pytest.mark.parametrize("generation", [None, OPEN, CLOSED], ids=["unreadable", "open", "closed"])
def test_a_marked_volume_that_turns_up_blank_is_refused(
    generation: Generation | None, members: tuple[Listed, ...] | None, mark: str
) -> None:
    decision = refusal(a_blank(generation=generation, mark=mark, members=members))

    assert decision.why == f"vol-a was marked {mark!r} and turns up blank: its data was lost outside of us"


def test_a_founder_whose_volume_says_formed_does_not_found_though_the_store_says_open() -> None:
    refusal(ours(Data.MISSING, OPEN, mark="formed"))


# replaced disks and growing


def test_a_replaced_disk_takes_the_place_of_the_old_member_found_by_its_peer_url() -> None:
    seen = a_blank(generation=REPLACED, volume="vol-a2", members=QUORUM)

    assert decide_start(seen) == Join(remove=1, write_identity=True)


def test_the_old_member_is_found_by_its_peer_url_though_its_name_is_another() -> None:
    members = (B, C, a_member("a", 77, name="renamed"))

    assert decide_start(a_blank(generation=REPLACED, volume="vol-a2", members=members)) == Join(
        remove=77, write_identity=True
    )


def test_a_member_that_is_not_in_the_list_is_only_added() -> None:
    seen = a_blank(generation=GROWN, member="d", volume="vol-d", members=QUORUM)

    assert decide_start(seen) == Join(remove=None, write_identity=True)


def test_a_member_listed_under_another_peer_url_is_not_added_a_second_time() -> None:
    moved = replace(a_member("a", 1), peer_urls=("http://10.0.0.9:2380",))

    decision = refusal(a_blank(generation=REPLACED, volume="vol-a2", members=(moved, B, C)))

    assert decision.why == "main/a is listed with other peer URLs than https://etcd-a.internal.dev:2380"


def test_a_resumed_join_removes_nothing_when_our_learner_is_already_added() -> None:
    added = a_member("a", 9, started=False, learner=True, name="")

    blank = a_blank(generation=REPLACED, volume="vol-a2", members=(B, C, added))
    with_identity = ours(Data.MISSING, members=(B, C, added))

    assert decide_start(blank) == Join(remove=None, write_identity=True)
    assert decide_start(with_identity) == Join(remove=None, move_aside=True)


def test_a_join_killed_after_its_remove_only_adds() -> None:
    assert decide_start(ours(Data.MISSING, members=(B, C))) == Join(remove=None, move_aside=True)


def test_a_learner_that_had_started_and_lost_its_data_is_removed_first() -> None:
    started = a_member("a", 9, learner=True)

    assert decide_start(ours(Data.MISSING, members=(B, C, started))) == Join(remove=9, move_aside=True)


def test_a_voter_that_somebody_added_by_hand_is_replaced_and_not_founded() -> None:
    by_hand = a_member("a", 9, started=False, name="")

    assert decide_start(a_blank(generation=CLOSED, members=(B, C, by_hand))) == Join(remove=9, write_identity=True)


def test_another_volume_of_the_same_member_is_refused_naming_both() -> None:
    for members in (None, QUORUM, LATE):
        decision = refusal(a_blank(generation=REPLACED, volume="vol-a2", siblings=("vol-a",), members=members))

        assert decision.why == "main/a has several volumes: vol-a2, vol-a"
        assert decision.hint == "untag all but one"


def test_a_blank_disk_waits_until_the_list_of_volumes_is_complete() -> None:
    for members in (None, QUORUM):
        decision = waiting(a_blank(generation=REPLACED, volume="vol-a2", siblings=None, members=members))

        assert decision.why == "the list of volumes is not complete; main/a may have another"


def test_a_blank_disk_that_we_did_not_make_is_refused_though_the_others_have_a_quorum() -> None:
    for generation in (None, CLOSED):
        decision = refusal(a_blank(generation=generation, volume="vol-x", members=QUORUM))

        assert decision.why == "vol-x is not a volume that we made for main/a"
        assert decision.hint


# no quorum


@pytest.mark.parametrize("members", [None, ()], ids=["no list", "an empty list"])
def test_a_blank_disk_waits_while_the_others_are_merely_down(members: tuple[Listed, ...] | None) -> None:
    decision = waiting(a_blank(generation=CLOSED, members=members))

    assert decision.why == "main/a is blank and joins the others once they have a quorum"


def test_once_volumes_are_known_to_be_gone_a_person_is_told_which_and_the_way_out() -> None:
    decision = refusal(a_blank(generation=CLOSED, lost=("b", "c")))

    assert decision.why == "main/a is blank and the volumes of b, c are gone: nobody has a quorum to join"
    assert "rebuilds the cluster" in decision.hint


def test_a_lost_volume_does_not_matter_while_the_others_have_a_quorum() -> None:
    seen = a_blank(generation=REPLACED, volume="vol-a2", members=QUORUM, lost=("a",))

    assert decide_start(seen) == Join(remove=1, write_identity=True)


# ours, data missing or corrupt


def test_a_volume_of_ours_that_lost_its_data_joins_after_moving_aside_what_is_left() -> None:
    assert decide_start(ours(Data.MISSING, members=QUORUM)) == Join(remove=1, move_aside=True)


@pytest.mark.parametrize("members", [None, ()], ids=["no list", "an empty list"])
def test_a_volume_of_ours_that_lost_its_data_is_for_a_person_without_a_quorum(
    members: tuple[Listed, ...] | None,
) -> None:
    decision = refusal(ours(Data.MISSING, members=members))

    assert decision.why == "the data of main/a is gone, and the other members have no quorum"
    assert "rebuilds the cluster" in decision.hint


def test_a_volume_that_lost_its_data_does_not_remove_the_member_living_on_another_volume() -> None:
    decision = refusal(ours(Data.MISSING, members=QUORUM, siblings=("vol-a2",)))

    assert decision.why == "main/a has several volumes: vol-a, vol-a2"
    waiting(ours(Data.MISSING, members=QUORUM, siblings=None))


def test_a_generation_that_cannot_be_read_is_closed() -> None:
    refusal(ours(Data.MISSING, None, mark="forming"))
    refusal(a_blank(generation=None))
    assert decide_start(ours(Data.MISSING, None, mark="forming", members=QUORUM)) == Join(remove=1, move_aside=True)


@pytest.mark.parametrize("members", [None, QUORUM], ids=["no quorum", "quorum"])
@pytest.mark.parametrize("generation", [None, OPEN, CLOSED], ids=["unreadable", "open", "closed"])
def test_corrupt_data_is_for_a_person(generation: Generation | None, members: tuple[Listed, ...] | None) -> None:
    decision = refusal(ours(Data.CORRUPT, generation, mark="forming", members=members))

    assert decision.why == "etcd says the data of main/a is corrupt"
    assert decision.hint


# not ours


@pytest.mark.parametrize("members", [None, QUORUM], ids=["no quorum", "quorum"])
@pytest.mark.parametrize("generation", [None, OPEN, CLOSED], ids=["unreadable", "open", "closed"])
def test_the_layout_of_the_original_is_refused_with_the_way_to_adopt_it(
    generation: Generation | None, members: tuple[Listed, ...] | None
) -> None:
    decision = refusal(replace(a_blank(generation=generation, members=members), data=Data.ORIGINAL))

    assert decision.why == "vol-a carries main/a in the layout of the original"
    assert decision.hint == "protokube etcd adopt vol-a"


def test_an_identity_of_ours_beside_data_of_the_original_is_for_a_person() -> None:
    assert "which is right" in refusal(ours(Data.ORIGINAL, OPEN, mark="forming")).hint


@pytest.mark.parametrize("field", ["cluster", "etcd_cluster", "member", "volume"])
@pytest.mark.parametrize("data", Data)
@pytest.mark.parametrize("generation", [None, OPEN, CLOSED], ids=["unreadable", "open", "closed"])
def test_a_volume_that_is_not_ours_is_refused(generation: Generation | None, data: Data, field: str) -> None:
    foreign = Identity(**{**asdict(an_identity()), field: "other"})
    for members in (None, QUORUM, LATE):
        seen = replace(ours(data, generation, mark="forming", members=members), identity=foreign, proven_blank=True)
        decision = refusal(seen)
        assert "'other'" in decision.why
        assert decision.hint == "correct the tags of vol-a, or detach it"


@pytest.mark.parametrize("data", Data)
@pytest.mark.parametrize("generation", [None, OPEN, CLOSED], ids=["unreadable", "open", "closed"])
def test_an_identity_that_cannot_be_read_is_refused_and_is_never_blank(
    generation: Generation | None, data: Data
) -> None:
    for members in (None, QUORUM, LATE):
        blank = a_blank(generation=generation, members=members)
        decision = refusal(replace(blank, identity=Unreadable("not JSON"), data=data))
        assert decision.why == "the identity on vol-a cannot be read: not JSON"
        assert decision.hint


@pytest.mark.parametrize("data", [Data.PRESENT, Data.CORRUPT])
def test_data_without_an_identity_is_refused(data: Data) -> None:
    decision = refusal(replace(a_blank(generation=OPEN), data=data))

    assert decision.why == "vol-a has no identity and is not proven blank"


def test_a_disk_that_only_looks_empty_is_refused() -> None:
    for members in (None, QUORUM, LATE):
        decision = refusal(replace(a_blank(generation=OPEN, members=members), proven_blank=False))
        assert decision.why == "vol-a has no identity and is not proven blank"


# the late founder


def test_a_late_founder_that_never_started_is_not_replaced_but_starts_new() -> None:
    assert decide_start(a_blank(generation=CLOSED, members=LATE)) == Start(fresh=True, write_identity=True)
    assert decide_start(ours(Data.MISSING, mark="forming", members=LATE)) == Start(fresh=True)


def test_a_late_founder_with_another_volume_is_refused_naming_both() -> None:
    decision = refusal(a_blank(generation=CLOSED, members=LATE, siblings=("vol-a2",)))

    assert decision.why == "main/a has several volumes: vol-a, vol-a2"


def test_a_late_founder_waits_for_a_complete_list_and_for_the_provider() -> None:
    waiting(a_blank(generation=CLOSED, members=LATE, siblings=None))
    waiting(a_blank(generation=CLOSED, members=LATE, mark=None))


def test_a_late_founder_whose_volume_says_formed_is_replaced() -> None:
    assert decide_start(ours(Data.MISSING, mark="formed", members=LATE)) == Join(remove=1, move_aside=True)


def test_a_replacement_of_a_founder_that_never_started_joins() -> None:
    seen = a_blank(generation=REPLACED, volume="vol-a2", members=LATE)

    assert decide_start(seen) == Join(remove=1, write_identity=True)


def test_a_late_founder_waits_while_nobody_can_say_whether_it_ever_started() -> None:
    waiting(a_blank(generation=CLOSED, members=None))


def test_a_founder_listed_as_a_learner_is_joining_and_does_not_start_new() -> None:
    learner = a_member("a", 9, started=False, learner=True)

    for generation in (OPEN, CLOSED):
        assert decide_start(a_blank(generation=generation, members=(B, C, learner))) == Join(
            remove=None, write_identity=True
        )
