"""Numbered revisions: a number is given once, what is damaged is refused, and a lost answer changes nothing twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from builders.revisions import CLUSTER, LosingStore, a_master, a_revision, keep
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.launch import revisions
from protokube.launch.machine import MasterConfig, to_tree
from protokube.launch.revisions import (
    Revision,
    by_number,
    change_rollout,
    create_revision,
    decode_revision,
    digest_of,
    encode_revision,
    in_force,
    numbers,
    put_in_force,
    read_revision,
    read_rollout,
    with_versions,
)
from protokube.launch.rollout import Failure, Rollout, State, Turn, encode
from protokube.store import AlreadyThere, Changed, NotThere, Unsure, Version, layout
from protokube.store.memory import MemoryStore

FAILURE = Failure(machine="i-1", name="master-a", revision=2, text="etcd: it does not run")


def with_port(port: int) -> MasterConfig:
    """A configuration that differs from others."""
    return replace(a_master(), api_port=port)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore(request.node.name)


# One revision.


def test_a_revision_is_read_back_with_its_number_in_its_configuration() -> None:
    made = a_revision(7, source="dev.yaml", kubernetes="1.34.1", etcd="3.6.1", note="as revision 2")

    assert decode_revision(encode_revision(made)) == made
    assert decode_revision(encode_revision(replace(made, master=a_master()))).master.revision == 7


def test_the_keys_of_a_revision_keep_their_order_so_that_no_manifest_is_written_anew() -> None:
    main = a_master().etcd[0]
    first = replace(main.members[0], settings={"z": 1, "a": {"y": 2, "b": 3}, "m": [{"q": 1, "c": 2}]})
    made = a_revision(1, replace(a_master(), etcd=(replace(main, members=(first, *main.members[1:])),)))
    found = decode_revision(encode_revision(made))

    assert json.dumps(to_tree(found.master)) == json.dumps(to_tree(made.master))
    assert list(found.master.etcd[0].members[0].settings) == ["z", "a", "m"]
    assert encode_revision(found) == encode_revision(made)


def test_the_digest_is_that_of_the_configuration_alone() -> None:
    plain = a_master()

    assert digest_of(replace(plain, revision=9)) == digest_of(plain)
    assert digest_of(replace(plain, addons="sha256:other")) == digest_of(plain)
    assert digest_of(with_port(444)) != digest_of(plain)


def test_the_digest_does_not_depend_on_the_order_of_keys_nor_on_a_way_through_json() -> None:
    plain = a_master()
    turned = replace(plain, certificates=dict(reversed(plain.certificates.items())))

    assert list(turned.certificates) != list(plain.certificates)
    assert digest_of(turned) == digest_of(plain)
    assert digest_of(decode_revision(encode_revision(a_revision())).master) == digest_of(plain)


def changed(how: Callable[[dict[str, Any]], object], number: int = 1) -> bytes:
    tree = json.loads(encode_revision(a_revision(number)))
    how(tree)
    return json.dumps(tree).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        encode_revision(a_revision())[:-100],
        changed(lambda tree: tree.pop("master")),
        changed(lambda tree: tree.pop("digest")),
        changed(lambda tree: tree.update(more=1)),
        changed(lambda tree: tree.update(number="1")),
        changed(lambda tree: tree.update(number=1.5)),
        changed(lambda tree: tree.update(number=-1)),
        changed(lambda tree: tree.update(number=float("inf"))),
        changed(lambda tree: tree.update(master=[])),
        changed(lambda tree: tree["master"].update(surprise=1)),
        changed(lambda tree: tree["master"].update(etcd=[3])),
    ],
)
def test_what_is_no_revision_is_refused_with_a_way_out(data: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        decode_revision(data)
    assert refused.value.hint


def test_a_configuration_that_was_changed_in_the_store_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="revision 1 is damaged"):
        decode_revision(changed(lambda tree: tree["master"].update(api_port=1)))


def test_a_revision_of_a_newer_protokube_is_refused_as_such() -> None:
    with pytest.raises(InvalidRequest, match="newer version of protokube"):
        decode_revision(changed(lambda tree: tree["master"].update(version=99)))


def test_a_revision_under_the_number_of_another_is_refused(store: MemoryStore) -> None:
    store.create(layout.revision(CLUSTER, 7), encode_revision(a_revision(3)))

    with pytest.raises(InvalidRequest, match=r"000007\.json is revision 3 of laptop"):
        read_revision(store, CLUSTER, 7)


def test_a_revision_of_another_cluster_is_refused(store: MemoryStore) -> None:
    store.create(layout.revision(CLUSTER, 3), encode_revision(a_revision(3, replace(a_master(), cluster="other"))))

    with pytest.raises(InvalidRequest, match=r"000003\.json is revision 3 of other"):
        read_revision(store, CLUSTER, 3)


def test_a_revision_that_is_not_there_is_said_to_be_missing(store: MemoryStore) -> None:
    with pytest.raises(NotThere, match=r"laptop/revisions/000004\.json"):
        read_revision(store, CLUSTER, 4)


# Their numbers.


def test_numbers_are_those_of_revisions_and_ignore_what_else_lies_there(store: MemoryStore) -> None:
    keep(store, a_revision(10), a_revision(2), a_revision(1_000_000))
    for name in ("notes.txt", "000003.json.bak", "000004.json~", "²", "-5.json"):
        store.put(f"{layout.revisions(CLUSTER)}/{name}", b"")
    store.put(layout.revision("laptop2", 77), b"")

    assert numbers(store, CLUSTER) == [2, 10, 1_000_000]


def test_a_number_is_given_once_however_many_operators_ask_at_the_same_time(store: MemoryStore) -> None:
    start, found = threading.Barrier(6), list[int]()

    def operator(name: int) -> None:
        start.wait()
        made = create_revision(store, CLUSTER, lambda number: a_revision(number, author=f"operator-{name}"))
        assert read_revision(store, CLUSTER, made.number).author == f"operator-{name}"
        found.append(made.number)

    threads = [threading.Thread(target=operator, args=(name,)) for name in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(found) == numbers(store, CLUSTER) == [1, 2, 3, 4, 5, 6]


def test_a_number_is_not_given_again_though_its_revision_was_never_put_in_force(store: MemoryStore) -> None:
    create_revision(store, CLUSTER, a_revision)
    keep(store, a_revision(41))

    assert create_revision(store, CLUSTER, a_revision).number == 42


def test_an_operator_who_is_always_too_late_is_told_to_run_it_again(store: MemoryStore) -> None:
    rivals = count(1)

    def slow(_number: int) -> Revision:
        made = a_revision(next(rivals))
        keep(store, made)  # a rival is faster, each time
        return made

    with pytest.raises(TryLater, match="are being changed by others"):
        create_revision(store, CLUSTER, slow)


def test_history_has_all_that_can_be_read(store: MemoryStore) -> None:
    keep(store, a_revision(1), a_revision(4))
    store.put(layout.revision(CLUSTER, 2), b"damaged")
    store.put(layout.revision(CLUSTER, 3), encode_revision(a_revision(1)))

    assert list(by_number(store, CLUSTER)) == [1, 4]


# The record.


def test_before_the_first_revision_there_is_no_record_and_nothing_in_force(store: MemoryStore) -> None:
    assert read_rollout(store, CLUSTER) is None
    assert in_force(store, CLUSTER) is None


def test_what_is_in_force_is_the_record_and_the_revision_that_it_names(store: MemoryStore) -> None:
    keep(store, a_revision(1), a_revision(2, with_port(444)))
    put_in_force(store, CLUSTER, a_revision(1), running=False)
    put_in_force(store, CLUSTER, a_revision(2, with_port(444)), running=True)
    found = in_force(store, CLUSTER)

    assert found is not None
    assert found[0] == Rollout(wanted=2, before=1, state=State.ROLLING)
    assert found[1].master.api_port == 444


def test_a_record_that_cannot_be_read_is_neither_taken_for_none_nor_written_over(store: MemoryStore) -> None:
    store.put(layout.rollout(CLUSTER), b"{}")

    for attempt in (
        lambda: read_rollout(store, CLUSTER),
        lambda: in_force(store, CLUSTER),
        lambda: put_in_force(store, CLUSTER, a_revision(), running=True),
        lambda: change_rollout(store, CLUSTER, lambda known: known.noted(1.0, "", "x")),
    ):
        with pytest.raises(Refused, match="the rollout record of laptop cannot be read") as refused:
            attempt()
        assert refused.value.hint
    assert store.read(layout.rollout(CLUSTER)).data == b"{}"


def test_a_change_is_written_over_exactly_what_was_read(store: MemoryStore) -> None:
    put_in_force(store, CLUSTER, a_revision(1), running=False)
    turn = Turn(machine="i-2", name="master-b", at=1.0)

    def slow(known: Rollout) -> Rollout:
        store.put(layout.rollout(CLUSTER), encode(replace(known, turn=turn)))
        return replace(known, state=State.STOPPED)

    with pytest.raises(Changed):
        change_rollout(store, CLUSTER, slow)
    assert read_rollout(store, CLUSTER) == Rollout(wanted=1, state=State.DONE, turn=turn)


def test_a_change_that_changes_nothing_is_not_written(store: MemoryStore) -> None:
    put_in_force(store, CLUSTER, a_revision(1), running=False)
    version = store.read(layout.rollout(CLUSTER)).version

    change_rollout(store, CLUSTER, lambda known: known)

    assert store.read(layout.rollout(CLUSTER)).version == version


# Putting one in force.


@pytest.mark.parametrize("running", [True, False])
def test_the_first_revision_is_simply_there(store: MemoryStore, running: bool) -> None:
    record = put_in_force(store, CLUSTER, a_revision(1), running=running)

    assert record == read_rollout(store, CLUSTER) == Rollout(wanted=1, state=State.DONE)
    assert [each.text for each in record.events] == ["revision 1 put in force by anna@laptop"]


def test_without_masters_that_run_a_revision_is_done_at_once(store: MemoryStore) -> None:
    put_in_force(store, CLUSTER, a_revision(1), running=False)

    assert put_in_force(store, CLUSTER, a_revision(2), running=False) == Rollout(wanted=2, before=1, state=State.DONE)


@pytest.mark.parametrize("first", ["", "before", "after"])
@pytest.mark.parametrize("second", ["", "before", "after"])
def test_a_lost_answer_puts_nothing_in_force_twice(request: pytest.FixtureRequest, first: str, second: str) -> None:
    store = LosingStore(request.node.name, first)
    put_in_force(store, CLUSTER, a_revision(1), running=False)
    store.lost = [second]

    record = put_in_force(store, CLUSTER, a_revision(2), running=True)

    assert record == read_rollout(store, CLUSTER) == Rollout(wanted=2, before=1, state=State.ROLLING)
    assert [each.text.split()[1] for each in record.events] == ["1", "2"]


@pytest.mark.parametrize("lost", ["", "before", "after"])
def test_a_revision_that_stopped_is_rolled_out_again(request: pytest.FixtureRequest, lost: str) -> None:
    store = LosingStore(request.node.name)
    put_in_force(store, CLUSTER, a_revision(1), running=False)
    put_in_force(store, CLUSTER, a_revision(2), running=True)
    change_rollout(store, CLUSTER, lambda known: known.stopped(FAILURE, 5.0))
    store.lost = [lost]

    record = put_in_force(store, CLUSTER, a_revision(2), running=True)

    assert record == read_rollout(store, CLUSTER) == Rollout(wanted=2, before=1, state=State.ROLLING)
    assert [each.text.partition(":")[0] for each in record.events][-2:] == [
        "revision 2 stopped",
        "revision 2 put in force by anna@laptop",
    ]


@pytest.mark.parametrize("state", [State.ROLLING, State.DONE])
def test_a_revision_that_is_in_force_is_not_put_in_force_again(store: MemoryStore, state: State) -> None:
    put_in_force(store, CLUSTER, a_revision(1), running=False)
    put_in_force(store, CLUSTER, a_revision(2), running=True)
    change_rollout(store, CLUSTER, lambda known: replace(known, state=state))
    version = store.read(layout.rollout(CLUSTER)).version

    assert put_in_force(store, CLUSTER, a_revision(2), running=True).state is state
    assert store.read(layout.rollout(CLUSTER)).version == version


def test_of_two_operators_at_one_moment_both_revisions_are_in_the_timeline(store: MemoryStore) -> None:
    put_in_force(store, CLUSTER, a_revision(1), running=False)
    start = threading.Barrier(2)

    def operator(number: int) -> None:
        start.wait()
        put_in_force(store, CLUSTER, a_revision(number), running=True)

    threads = [threading.Thread(target=operator, args=(number,)) for number in (2, 3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    record = read_rollout(store, CLUSTER)

    assert record is not None
    assert (record.before, record.state) == (1, State.ROLLING)
    assert sorted(each.text.split()[1] for each in record.events) == ["1", "2", "3"]
    assert record.events[-1].text.split()[1] == str(record.wanted)


@pytest.mark.parametrize("error", [AlreadyThere("x", "y"), Changed("x", "y", saw=""), Unsure("no answer")])
def test_an_operator_who_always_loses_gives_up(
    request: pytest.FixtureRequest, error: AlreadyThere | Changed | Unsure
) -> None:
    class Lost(MemoryStore):
        attempts = 0

        def create(self, path: str, data: bytes) -> Version:
            self.attempts += 1
            raise error

    store = Lost(request.node.name)
    with pytest.raises(TryLater, match="is being changed by others"):
        put_in_force(store, CLUSTER, a_revision(1), running=True)
    assert store.attempts == revisions.ATTEMPTS


# What masters run.


def test_what_all_masters_ran_is_the_revision_before_until_a_rollout_is_done(store: MemoryStore) -> None:
    for number in (1, 2):
        keep(store, a_revision(number, with_port(440 + number)))
        put_in_force(store, CLUSTER, a_revision(number, with_port(440 + number)), running=number > 1)

    rolling = read_rollout(store, CLUSTER)
    done = change_rollout(store, CLUSTER, lambda known: known.completed(1.0, "master-a"))

    assert rolling is not None
    assert (rolling.at_boot(), done.at_boot()) == (1, 2)


def test_a_plan_is_not_put_in_force_over_what_somebody_else_put_in_force_meanwhile(store: MemoryStore) -> None:
    put_in_force(store, CLUSTER, a_revision(1), running=True)
    planned_on = change_rollout(store, CLUSTER, lambda known: known.completed(1.0, "master-a"))
    put_in_force(store, CLUSTER, a_revision(2), running=True, planned_on=planned_on)

    with pytest.raises(Refused, match="the cluster changed while this command ran") as refused:
        put_in_force(store, CLUSTER, a_revision(3), running=True, planned_on=planned_on)
    again = put_in_force(store, CLUSTER, a_revision(2), running=True, planned_on=planned_on)

    assert refused.value.saw == "planned on revision 1 (done), now 2 (rolling)"
    assert again.wanted == 2, "the same one, whose answer was lost"


def test_the_versions_of_an_older_protokube_are_taken_from_the_revision() -> None:
    plain = replace(a_master(), kubernetes="", etcd=tuple(replace(each, version="") for each in a_master().etcd))
    filled = with_versions(a_revision(1, plain, etcd="3.5.26", kubernetes="1.34.1"))

    assert ([each.version for each in filled.etcd], filled.kubernetes) == (["3.5.26"], "1.34.1")
    assert with_versions(a_revision(1, a_master(), etcd="3.4.1", kubernetes="1.2.3")) == replace(a_master(), revision=1)


def test_versions_that_are_not_known_are_not_in_the_digest_of_a_revision() -> None:
    """Revisions of earlier versions of protokube have none, and are not damaged."""
    plain = replace(a_master(), kubernetes="", etcd=tuple(replace(each, version="") for each in a_master().etcd))

    assert "kubernetes" not in to_tree(plain)
    assert all("version" not in each for each in to_tree(plain)["etcd"])
    assert digest_of(plain) != digest_of(replace(plain, kubernetes="1.36.4"))
