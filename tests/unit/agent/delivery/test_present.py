"""The revision on a master's own disk: found at each start, left for another one, and returned to."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from builders.revisions import CLUSTER, a_revision, keep, with_settings
from clusters.scenario.edges import ShakyStore
from clusters.scenario.host import wanted_of
from protokube.agent.delivery.present import FORMER, PRESENT, at_start, go_back, read, take
from protokube.errors import InvalidRequest
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import encode_revision, put_in_force
from protokube.store import layout
from protokube.store.memory import MemoryStore

ONE, TWO, THREE = (a_revision(number, with_settings(**{"snapshot-count": number})) for number in (1, 2, 3))
LAUNCHED = ONE.master


@pytest.fixture
def store(request: pytest.FixtureRequest) -> ShakyStore:
    """Where 1 is in force, and 2 may be."""
    inner = MemoryStore(request.node.name)
    keep(inner, ONE, TWO)
    put_in_force(inner, CLUSTER, ONE, running=False)
    return ShakyStore(inner)


def numbers(root: Path) -> tuple[int | None, int | None]:
    """Of the present and the former revision."""
    found = [read(root / path) for path in (PRESENT, FORMER)]
    return tuple(each.number if each else None for each in found)  # type: ignore[return-value]


def moved(wanted: MasterConfig) -> MasterConfig:
    """What no living cluster can change."""
    return replace(wanted, api_internal_name="elsewhere.example.com")


# At a start.


def test_a_new_machine_starts_with_its_launch_data_and_keeps_them(tmp_path: Path, store: ShakyStore) -> None:
    assert at_start(tmp_path, LAUNCHED, store) == LAUNCHED
    assert numbers(tmp_path) == (1, None)
    assert stat.S_IMODE((tmp_path / PRESENT).stat().st_mode) == 0o600


def test_a_new_machine_starts_with_what_all_masters_run_whatever_its_launch_data_say(
    tmp_path: Path, store: ShakyStore
) -> None:
    put_in_force(store, CLUSTER, TWO, running=False)

    assert at_start(tmp_path, LAUNCHED, store) == TWO.master
    assert numbers(tmp_path) == (2, None)


def test_during_a_rollout_a_new_machine_starts_with_the_revision_before_it(tmp_path: Path, store: ShakyStore) -> None:
    put_in_force(store, CLUSTER, TWO, running=True)

    assert at_start(tmp_path, TWO.master, store) == ONE.master


NODE = a_revision(2, replace(with_settings(), kubelet_kubeconfig="/kubeconfig"))


def test_a_new_machine_that_cannot_run_what_all_ran_before_starts_with_its_launch_data(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """It takes the place of a machine that cannot run the wanted revision, or was made before that is in force."""
    store = MemoryStore(request.node.name)
    keep(store, ONE, NODE)
    put_in_force(store, CLUSTER, ONE, running=False)
    assert at_start(tmp_path / "made before", NODE.master, store) == NODE.master
    put_in_force(store, CLUSTER, NODE, running=True)
    assert at_start(tmp_path / "new", NODE.master, store) == NODE.master
    assert at_start(tmp_path / "old", LAUNCHED, store) == ONE.master


def test_a_machine_never_starts_with_a_revision_that_needs_another_one(tmp_path: Path, store: ShakyStore) -> None:
    """As an earlier protokube may have taken it."""
    take(tmp_path, NODE)

    assert at_start(tmp_path, LAUNCHED, store) == ONE.master
    assert numbers(tmp_path)[0] == 1


def test_a_master_starts_with_what_it_ran_before_and_asks_no_store(tmp_path: Path, store: ShakyStore) -> None:
    take(tmp_path, TWO)
    store.down = True

    assert at_start(tmp_path, LAUNCHED, store) == TWO.master
    assert store.reads == 0


def test_launch_data_without_a_revision_are_kept_and_found_again(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = MemoryStore(request.node.name)

    assert at_start(tmp_path, wanted_of(), store) == at_start(tmp_path, wanted_of(), store) == wanted_of()
    assert numbers(tmp_path) == (0, None)


@pytest.mark.parametrize("data", [b"", b"{", b"{}", encode_revision(TWO)[:-40]])
def test_a_present_revision_that_cannot_be_read_is_replaced_by_that_of_a_new_machine(
    tmp_path: Path, store: ShakyStore, data: bytes
) -> None:
    (tmp_path / PRESENT).parent.mkdir(parents=True)
    (tmp_path / PRESENT).write_bytes(data)

    assert at_start(tmp_path, LAUNCHED, store) == LAUNCHED
    assert numbers(tmp_path) == (1, None)


def test_a_disk_of_another_cluster_says_nothing_about_this_one(tmp_path: Path, store: ShakyStore) -> None:
    take(tmp_path, a_revision(9, moved(TWO.master)))

    assert at_start(tmp_path, LAUNCHED, store) == LAUNCHED


def damage_record(store: ShakyStore) -> None:
    store.inner.put(layout.rollout(CLUSTER), b"{}")


def remove_revision(store: ShakyStore) -> None:
    store.inner.put(layout.rollout(CLUSTER), store.read(layout.rollout(CLUSTER)).data.replace(b": 2", b": 7"))


def damage_revision(store: ShakyStore) -> None:
    store.inner.put(layout.revision(CLUSTER, 2), b"{}")


def store_goes(store: ShakyStore) -> None:
    store.down = True


def change_what_is_fixed(store: ShakyStore) -> None:
    store.inner.put(layout.revision(CLUSTER, 2), encode_revision(a_revision(2, moved(TWO.master))))


@pytest.mark.parametrize("how", [store_goes, damage_record, remove_revision, damage_revision, change_what_is_fixed])
def test_a_new_machine_starts_with_its_launch_data_if_the_store_says_nothing_better(
    tmp_path: Path, store: ShakyStore, how: object, caplog: pytest.LogCaptureFixture
) -> None:
    put_in_force(store, CLUSTER, TWO, running=False)
    assert callable(how)
    how(store)

    assert at_start(tmp_path, LAUNCHED, store) == LAUNCHED
    assert numbers(tmp_path) == (1, None)
    assert "starting with the launch data" in caplog.text


# Leaving for another one, and the way back.


def test_the_present_revision_becomes_the_former_one(tmp_path: Path) -> None:
    for each in (ONE, TWO, THREE):
        take(tmp_path, each)

    assert numbers(tmp_path) == (3, 2)
    assert read(tmp_path / PRESENT) == THREE
    assert read(tmp_path / FORMER) == TWO
    assert stat.S_IMODE((tmp_path / FORMER).stat().st_mode) == 0o600


def test_the_way_back_leads_to_the_former_revision_and_remembers_what_is_left(tmp_path: Path) -> None:
    """What only the failed revision had is found by comparing the two, and removed."""
    take(tmp_path, ONE)
    take(tmp_path, TWO)

    assert go_back(tmp_path) == ONE
    assert numbers(tmp_path) == (1, 2)


def test_after_a_return_the_next_revision_leads_back_to_what_was_returned_to(tmp_path: Path) -> None:
    for each in (ONE, TWO):
        take(tmp_path, each)
    go_back(tmp_path)
    take(tmp_path, THREE)

    assert numbers(tmp_path) == (3, 1)


def test_an_agent_that_dies_between_two_files_goes_on_with_what_it_ran(tmp_path: Path) -> None:
    """`take` writes the former one first, `go_back` the present one: after a crash both files hold the same."""
    take(tmp_path, ONE)
    (tmp_path / FORMER).write_bytes((tmp_path / PRESENT).read_bytes())

    assert numbers(tmp_path) == (1, 1)
    take(tmp_path, TWO)
    assert numbers(tmp_path) == (2, 1)


def test_without_a_former_revision_there_is_no_way_back(tmp_path: Path) -> None:
    take(tmp_path, ONE)

    with pytest.raises(InvalidRequest, match="no former revision"):
        go_back(tmp_path)
    assert numbers(tmp_path) == (1, None)


def test_a_damaged_former_revision_is_not_returned_to(tmp_path: Path) -> None:
    take(tmp_path, ONE)
    (tmp_path / FORMER).write_bytes(encode_revision(TWO).replace(b'"number": 2', b'"number": "2"'))

    with pytest.raises(InvalidRequest):
        go_back(tmp_path)
    assert numbers(tmp_path) == (1, None)


def test_a_revision_of_an_earlier_protokube_is_written_as_it_was_found(tmp_path: Path) -> None:
    """The bytes of the present revision become the former one: nothing is read into them."""
    take(tmp_path, ONE)
    before = (tmp_path / PRESENT).read_bytes()
    take(tmp_path, TWO)

    assert (tmp_path / FORMER).read_bytes() == before


def test_a_file_that_cannot_be_read_is_no_revision(tmp_path: Path) -> None:
    (tmp_path / PRESENT).mkdir(parents=True)

    assert read(tmp_path / PRESENT) is None
