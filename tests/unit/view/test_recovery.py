"""What is judged of a cluster that lost something while it was watched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from builders.view import NOW, a_disk, a_generation, a_host, a_member, a_view, an_agent, but, listed, names_of
from protokube.view.cluster import ClusterView
from protokube.view.recovery import Recovery, losses

GONE = "master-0 is gone"


def host_gone(view: ClusterView) -> ClusterView:
    """Its machine is dead, its volume free, and its member does not answer."""
    return replace(
        view,
        hosts=but(view.hosts, 0, alive=False, dead=True),
        disks=but(view.disks, 0, attached_to=None, phase=""),
        members=but(view.members, 0, healthy=False, host=None, why="nobody holds its volume", listed=()),
    )


def healed(view: ClusterView, **disk: Any) -> ClusterView:
    """On a new machine, with the next epoch."""
    name = "master-3"
    held: dict[str, Any] = {"attached_to": "master-3", "last_holder": "master-3", "epoch": 2, **disk}
    mounted = replace(an_agent().mounted[0], holder=name, epoch=held["epoch"])
    return replace(
        view,
        hosts=but(view.hosts, 0, id=name, name=name, address="10.77.0.14"),
        disks=but(view.disks, 0, **held),
        members=but(view.members, 0, host=name),
        agents=but(view.agents, 0, host=name, mounted=(mounted,)),
        records=names_of({"a": "10.77.0.14", "b": "10.77.0.12", "c": "10.77.0.13"}),
    )


def on_new_volume(view: ClusterView) -> ClusterView:
    mounted = replace(an_agent().mounted[0], volume="vol-new")
    return replace(
        view,
        disks=but(view.disks, 0, id="vol-new"),
        members=but(view.members, 0, volume="vol-new"),
        agents=but(view.agents, 0, mounted=(mounted,), phases={"vol-new": "serving"}),
        generations={"main": a_generation(founders={"a": "vol-new", "b": "vol-bbbb", "c": "vol-cccc"})},
    )


def later(view: ClusterView, seconds: float) -> ClusterView:
    return replace(view, at=NOW + seconds)


def test_nothing_that_is_lost_is_something_to_wait_for() -> None:
    recovery = Recovery(a_view())

    assert recovery.feed(later(a_view(), 5)) == ()
    assert recovery.lost_at is None
    assert recovery.missing == ("a loss: nothing was lost while it was watched",)
    assert not recovery.recovered


def test_a_killed_machine_is_seen_and_its_recovery_is_timed() -> None:
    recovery = Recovery(a_view())

    first = recovery.feed(later(host_gone(a_view()), 3))
    again = recovery.feed(later(host_gone(a_view()), 4))

    assert first == (GONE, "vol-aaaa of main/a left master-0", "etcd-a is not healthy")
    assert again == ()
    assert not recovery.recovered
    assert recovery.missing == recovery.now.lacks
    assert recovery.missing != ()

    recovery.feed(later(healed(a_view()), 10))

    assert (recovery.recovered, recovery.seconds, recovery.broken, recovery.missing) == (True, 7.0, (), ())


def test_a_loss_that_healed_between_two_looks_is_seen_by_the_epoch() -> None:
    recovery = Recovery(a_view())

    recovery.feed(later(replace(a_view(), disks=but(a_view().disks, 0, epoch=2)), 60))

    assert recovery.losses == ("vol-aaaa of main/a was mounted anew by master-0",)
    assert (recovery.recovered, recovery.broken) == (True, ())


def test_a_second_loss_during_the_recovery_delays_its_end() -> None:
    recovery = Recovery(a_view())
    recovery.feed(later(host_gone(a_view()), 1))
    recovery.feed(later(healed(a_view()), 5))
    assert recovery.recovered

    recovery.feed(later(replace(healed(a_view()), members=but(a_view().members, 1, healthy=False, why="x")), 6))

    assert not recovery.recovered


def broken(after: ClusterView) -> tuple[str, ...]:
    recovery = Recovery(a_view())
    recovery.feed(later(after, 9))
    return recovery.broken


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (healed(a_view(), epoch=1), "vol-aaaa was taken over without raising its epoch: 1 before, 1 after"),
        (healed(a_view(), epoch=0), "the epoch of vol-aaaa went down from 1 to 0"),
        (replace(a_view(), members=tuple(replace(each, cluster_id=0xC2) for each in a_view().members)),
         "the members are of another cluster than before: c2"),
        (replace(a_view(), members=tuple(replace(each, listed=but(listed(), 0, id=7)) for each in a_view().members)),
         "etcd-a changed in the member list, though no volume was replaced"),
        (on_new_volume(a_view()),
         "etcd-a has its old id on a new volume: it must have joined as a new member"),
    ],
    ids=["not raised", "lowered", "another cluster", "another id", "the same id on a new volume"],
)  # fmt: skip
def test_each_broken_promise_is_one_sentence(after: ClusterView, sentence: str) -> None:
    assert sentence in broken(after)


def test_a_member_on_a_new_volume_with_a_new_id_keeps_every_promise() -> None:
    members = tuple(replace(each, listed=but(listed(), 0, id=0xF0)) for each in a_view().members)

    assert broken(on_new_volume(replace(a_view(), members=but(members, 0, id=0xF0)))) == ()


def test_what_nobody_could_see_is_no_loss() -> None:
    """A store without a report of etcd, or without a list of volumes at all, tells nothing about them."""
    unasked = tuple(replace(each, asked=False, healthy=False) for each in a_view().members)

    assert tuple(losses(a_view(), replace(a_view(), members=unasked, disks=(), volumes_known=False))) == ()


def test_volumes_that_are_all_deleted_are_lost() -> None:
    found = tuple(losses(a_view(), replace(a_view(), disks=())))

    assert found == tuple(f"vol-{short * 4} of main/{short} is gone" for short in "abc")


views = st.builds(
    replace,
    st.just(a_view()),
    at=st.floats(NOW, NOW + 1000),
    hosts=st.lists(st.builds(a_host, st.integers(0, 2), alive=st.booleans()), max_size=4).map(tuple),
    disks=st.lists(
        st.builds(
            a_disk, st.sampled_from("abc"), attached_to=st.sampled_from(["master-0", None]), epoch=st.integers(0, 3)
        )
    ).map(tuple),
    members=st.lists(st.builds(a_member, st.sampled_from("abc"), healthy=st.booleans(), listed=st.just(()))).map(tuple),
    agents=st.lists(st.builds(an_agent, st.integers(0, 2), serving=st.sampled_from([None, True, False]))).map(tuple),
)


@given(st.lists(views, max_size=6))
@examples(200)
def test_any_sequence_of_looks_ends_in_a_verdict(seen: list[ClusterView]) -> None:
    recovery = Recovery(a_view())
    for view in seen:
        recovery.feed(view)

    assert recovery.recovered == (recovery.lost_at is not None and recovery.now.ready)
    assert bool(recovery.losses) == (recovery.lost_at is not None)
    assert recovery.recovered == (recovery.missing == ())
    assert _unique(iter(recovery.losses))


def _unique(words: Iterator[str]) -> bool:
    found = list(words)
    return len(set(found)) == len(found)
