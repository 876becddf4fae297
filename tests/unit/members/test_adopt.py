"""Whether a volume of the original may become the home of one of our members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.original import manifest_of_the_original
from protokube.members.adopt import Adopt, AdoptDecision, Adopted, Layout, MemberManifest, decide_adopt, read_manifest
from protokube.members.generation import Generation
from protokube.members.identity import Identity, Nominated, Unreadable
from protokube.members.raftmark import LogPosition
from protokube.members.start import decide_start
from protokube.members.start_values import Data, Refuse, Seen, Start

TAGS = Nominated(cluster="dev.local", etcd_cluster="main", member="a", volume="vol-1")
RECORD = Generation(id="g1", etcd_cluster="main", token="t", founders={}, replacements={}, open=True)
WHOLE = Layout(
    identity=None, logs={"data": 3}, manifests={"etcd.manifest": manifest_of_the_original()}, database_size=20480
)
OURS = Identity(
    cluster="dev.local", etcd_cluster="main", member="a", volume="vol-1", generation="g1", epoch=2, holder="m"
)


def decide(layout: Layout = WHOLE, **changes: Any) -> AdoptDecision:
    arguments: dict[str, Any] = {"tags": TAGS, "name": "etcd-a", "generation": RECORD, "mark": "", "epoch": 0}
    return decide_adopt(layout, **arguments | changes)


def refusal(layout: Layout = WHOLE, **changes: Any) -> str:
    decision = decide(layout, **changes)
    assert isinstance(decision, Refuse), decision
    return decision.why


def test_a_volume_of_the_original_gets_the_identity_its_tags_say_and_creation_is_closed() -> None:
    decision = decide(epoch=4)

    assert isinstance(decision, Adopt)
    assert decision.identity == replace(OURS, epoch=4, holder="adopted")
    assert decision.generation == RECORD.closed()
    assert decision.warnings == ()


def test_etcd_goes_on_with_the_data_of_an_adopted_volume_and_never_founds() -> None:
    decision = decide()
    assert isinstance(decision, Adopt)
    seen = Seen(
        tags=TAGS, name="etcd-a", peer_url="https://etcd-a:2380", identity=decision.identity, proven_blank=False,
        data=Data.PRESENT, generation=decision.generation, mark="", siblings=(), members=None,
        position=LogPosition(cluster_id=1, member_id=2, term=3, commit=4, last_index=4),
    )  # fmt: skip

    assert decide_start(seen) == Start(fresh=False)


def test_whoever_mounts_it_next_takes_it_over_with_a_greater_epoch() -> None:
    decision = decide(epoch=4)
    assert isinstance(decision, Adopt)

    assert decision.identity.taken_over_by("master-0").epoch == 5


def test_an_adopted_volume_does_not_become_one_that_may_be_formatted() -> None:
    decision = decide()
    assert isinstance(decision, Adopt)

    assert not decision.generation.made_by_us("a", "vol-1")


def test_asked_again_it_is_adopted_already() -> None:
    assert decide(replace(WHOLE, identity=OURS)) == Adopted(OURS)


def test_an_identity_of_somebody_else_is_not_adopted_over() -> None:
    other = replace(OURS, member="b")

    assert refusal(replace(WHOLE, identity=other)) == "the disk says member 'b', its tags say 'a'"


def test_an_identity_that_cannot_be_read_is_not_adopted_over() -> None:
    assert "cannot be read: half a file" in refusal(replace(WHOLE, identity=Unreadable("half a file")))


@pytest.mark.parametrize("mark", ["forming", "formed", "a word of tomorrow"])
def test_a_volume_that_had_an_identity_of_ours_and_lost_it_is_no_volume_of_the_original(mark: str) -> None:
    assert refusal(mark=mark) == f"vol-1 is marked {mark!r}: it had an identity of ours, and lost it"


def test_without_data_there_is_nothing_to_adopt() -> None:
    assert refusal(replace(WHOLE, logs={})) == "vol-1 has no data of main to adopt"
    assert refusal(replace(WHOLE, logs={"data": 0})) == "vol-1 has no data of main to adopt"


def test_data_of_the_other_etcd_cluster_is_not_taken_for_ours() -> None:
    events = replace(WHOLE, logs={"data-events": 2})

    assert refusal(events) == "vol-1 has no data of main to adopt; it has data of data-events"
    assert refusal(replace(WHOLE, logs={"data": 1, "data-events": 2})) == (
        "vol-1 has data of several etcd clusters: data, data-events"
    )


def test_events_have_their_own_folder_and_manifest() -> None:
    text = manifest_of_the_original("etcd-events-a", key="events")
    layout = Layout(identity=None, logs={"data-events": 1}, manifests={"etcd-events.manifest": text})
    decision = decide(
        layout, tags=replace(TAGS, etcd_cluster="events"), name="etcd-events-a",
        generation=replace(RECORD, etcd_cluster="events"),
    )  # fmt: skip

    assert isinstance(decision, Adopt)


def test_a_manifest_of_another_member_contradicts_the_tags() -> None:
    other = replace(WHOLE, manifests={"etcd.manifest": manifest_of_the_original("etcd-b")})

    assert refusal(other) == "the manifest on vol-1 is that of etcd-b, its tags say etcd-a"


def test_without_a_record_there_is_nothing_to_enter_it_in() -> None:
    assert refusal(generation=None) == "there is no generation record of main to enter it in"


def test_a_manifest_that_cannot_be_read_is_a_warning() -> None:
    decision = decide(replace(WHOLE, manifests={}))

    assert isinstance(decision, Adopt)
    assert decision.warnings == ("no readable manifest is on it: only its tags say which member it is",)


def test_peers_that_spoke_http_are_a_warning() -> None:
    plain = replace(WHOLE, manifests={"etcd.manifest": manifest_of_the_original(scheme="http")})
    decision = decide(plain)

    assert isinstance(decision, Adopt)
    assert decision.warnings[0].startswith("its peers spoke http, ours speak https")


def test_a_manifest_says_name_token_and_peers() -> None:
    manifest = read_manifest(manifest_of_the_original("etcd-b"))

    assert manifest == MemberManifest(
        name="etcd-b",
        token="etcd-cluster-token-etcd",
        peers=tuple(f"etcd-{each}=https://etcd-{each}.internal.dev.local:2380" for each in "abc"),
    )


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "a: [", "spec: {}", "spec: {containers: []}", "spec: {containers: [{env: [x]}]}", "spec: 3"],
)
def test_what_is_no_pod_with_an_environment_is_no_manifest(text: str) -> None:
    assert read_manifest(text) is None


@settings(deadline=None)  # a busy machine is no bug
@given(st.text())
def test_no_text_breaks_the_reading_of_a_manifest(text: str) -> None:
    assert read_manifest(text) is None or isinstance(read_manifest(text), MemberManifest)


@settings(deadline=None)  # a busy machine is no bug
@given(
    st.sampled_from([None, OURS, replace(OURS, volume="vol-2"), Unreadable("x")]),
    st.dictionaries(st.sampled_from(["data", "data-events"]), st.integers(0, 2)),
    st.sampled_from([None, RECORD, RECORD.closed()]),
    st.sampled_from(["", "formatting:x", "forming", "formed", "?"]),
    st.integers(0, 5),
)
def test_whatever_is_adopted_has_data_and_no_identity_and_leaves_creation_closed(
    identity: Any, logs: dict[str, int], generation: Generation | None, mark: str, epoch: int
) -> None:
    layout = Layout(identity=identity, logs=logs, manifests={})
    decision = decide(layout, generation=generation, mark=mark, epoch=epoch)

    if isinstance(decision, Adopt):
        assert (identity, mark in ("", "formatting:x"), logs.get("data-events", 0)) == (None, True, 0)
        assert logs["data"] > 0
        assert not decision.generation.open
        assert decision.identity.epoch == epoch
