"""What all masters share is the same on each of them, closed to others, and stays while the store is away."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.errors import Refused, TryLater
from protokube.pki.authority import Authorities, Authority, ensure_authority
from protokube.pki.shared import CLUSTER_AUTHORITY, SERVICE_ACCOUNT, sync_shared
from protokube.store.memory import MemoryStore
from unit.pki.builders import NOW, a_keystore, authorities

PAIR = authorities(CLUSTER_AUTHORITY, SERVICE_ACCOUNT)
FILES = ["ca.crt", "ca.key", "service-account.key", "service-account.pub"]


class Away(dict[str, Authority]):
    """A store that does not answer."""

    def __missing__(self, name: str) -> Authority:
        raise TryLater(f"{name}: the store does not answer")


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {each.name: (each.stat().st_ino, each.read_bytes()) for each in folder.iterdir()}


def test_on_an_empty_machine_all_of_it_is_written_and_keys_are_closed(tmp_path: Path) -> None:
    folder = tmp_path / "srv" / "kubernetes"

    assert sync_shared(folder, PAIR) == [f"{name}: written" for name in FILES]
    modes = {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}
    assert modes == dict(zip(FILES, [0o644, 0o600, 0o600, 0o644], strict=True))


def test_what_is_in_order_is_not_touched_and_what_is_broken_is_mended(tmp_path: Path) -> None:
    sync_shared(tmp_path, PAIR)
    before = state(tmp_path)
    assert sync_shared(tmp_path, PAIR) == []
    assert state(tmp_path) == before

    (tmp_path / "service-account.key").write_text("half")
    assert sync_shared(tmp_path, PAIR) == ["service-account.key: written"]
    assert {name: data for name, (_, data) in state(tmp_path).items()} == {
        name: data for name, (_, data) in before.items()
    }


@pytest.mark.parametrize("source", [PAIR, Away()], ids=["from the store", "while the store is away"])
@pytest.mark.parametrize("name", ["ca.key", "service-account.key"])
def test_a_key_that_somebody_opened_to_others_is_closed_again(
    tmp_path: Path, source: dict[str, Authority], name: str
) -> None:
    sync_shared(tmp_path, PAIR)
    (tmp_path / name).chmod(0o644)

    assert sync_shared(tmp_path, source) == [f"{name}: could be read by others, no longer"]
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert sync_shared(tmp_path, source) == []


def test_every_master_has_the_same(tmp_path: Path) -> None:
    """A token signed by one API server is one that the others know."""
    store = MemoryStore("memory://shared")
    for name in (CLUSTER_AUTHORITY, SERVICE_ACCOUNT):
        ensure_authority(a_keystore(store), name, NOW)
    for master in "abc":
        sync_shared(tmp_path / master, Authorities(a_keystore(store)))

    contents = [{name: data for name, (_, data) in state(tmp_path / master).items()} for master in "abc"]
    assert contents[0] == contents[1] == contents[2]


def test_while_the_store_is_away_what_is_there_is_good_enough(tmp_path: Path) -> None:
    with pytest.raises(TryLater, match="kubernetes-ca: the store does not answer"):
        sync_shared(tmp_path, Away())
    sync_shared(tmp_path, PAIR)
    before = state(tmp_path)

    assert sync_shared(tmp_path, Away()) == []
    assert state(tmp_path) == before


def test_a_key_pair_that_nobody_made_is_for_a_person(tmp_path: Path) -> None:
    store = MemoryStore("memory://half")
    ensure_authority(a_keystore(store), CLUSTER_AUTHORITY, NOW)

    with pytest.raises(Refused, match="there is no authority 'service-account'"):
        sync_shared(tmp_path, Authorities(a_keystore(store)))
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_is_for_later(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(TryLater, match="cannot keep the keys"):
        sync_shared(tmp_path / "file", PAIR)
