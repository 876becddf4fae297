"""The files of a machine are kept current: each reason to issue one, and not a byte changed without a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from protokube.errors import Refused, TryLater
from protokube.manifests.certificate import CertificateWanted
from protokube.pki.authority import Authorities, Authority
from protokube.pki.files import sync_certificates
from protokube.pki.issue import issue
from protokube.pki.renewal import Place
from protokube.store.file import FileStore
from unit.pki.builders import DAY, NOW, a_keystore, a_wanted, authorities, parsed

SIGNERS = authorities("etcd-peer-ca", "etcd-client-ca")
WANTED = {
    "etcd-a-peer": a_wanted(),
    "etcd-a-server": a_wanted(authority="etcd-client-ca"),
    "client": a_wanted("protokube", authority="etcd-client-ca", names=(), usages=("client auth",)),
}


def state(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    return {each.name: (each.stat().st_ino, each.stat().st_mtime_ns, each.read_bytes()) for each in directory.iterdir()}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A machine on which everything is in order."""
    made = tmp_path / "kubernetes"
    sync_certificates(made, WANTED, SIGNERS, NOW)
    return made


def synced(directory: Path, now: float = NOW, *, peer: CertificateWanted = WANTED["etcd-a-peer"]) -> list[str]:
    return sync_certificates(directory, WANTED | {"etcd-a-peer": peer}, SIGNERS, now)


def test_on_an_empty_machine_everything_is_issued(tmp_path: Path) -> None:
    news = sync_certificates(tmp_path / "a" / "b", WANTED, SIGNERS, NOW)

    assert news == [
        "etcd-client-ca: written",
        "client: issued, it was missing",
        "etcd-peer-ca: written",
        "etcd-a-peer: issued, it was missing",
        "etcd-a-server: issued, it was missing",
    ]
    found = sorted(each.name for each in (tmp_path / "a" / "b").iterdir())
    pairs = [f"{name}.{kind}" for name in WANTED for kind in ("crt", "key")]
    assert found == sorted([*pairs, "etcd-client-ca.crt", "etcd-peer-ca.crt"])


def test_keys_are_for_their_owner_and_certificates_for_everybody(directory: Path) -> None:
    modes = {each.name: each.stat().st_mode & 0o777 for each in directory.iterdir()}

    assert {mode for name, mode in modes.items() if name.endswith(".key")} == {0o600}
    assert {mode for name, mode in modes.items() if name.endswith(".crt")} == {0o644}


def test_what_is_in_order_is_not_touched(directory: Path) -> None:
    before = state(directory)

    assert synced(directory) == []
    assert synced(directory, NOW + 200 * DAY) == []
    assert state(directory) == before


def break_key(directory: Path) -> None:
    (directory / "etcd-a-peer.key").write_bytes((directory / "client.key").read_bytes())


def sign_elsewhere(directory: Path) -> None:
    issued = issue(WANTED["etcd-a-peer"], authorities("etcd-peer-ca")["etcd-peer-ca"], NOW)
    (directory / "etcd-a-peer.crt").write_bytes(issued.certificate)
    (directory / "etcd-a-peer.key").write_bytes(issued.key)


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda each: (each / "etcd-a-peer.crt").unlink(), "it was missing"),
        (lambda each: (each / "etcd-a-peer.key").unlink(), "it was missing"),
        (lambda each: (each / "etcd-a-peer.crt").write_text("garbage"), "it could not be read"),
        (lambda each: (each / "etcd-a-peer.crt").write_text(""), "it could not be read"),
        (lambda each: (each / "etcd-a-peer.key").write_text("garbage"), "it could not be read"),
        (break_key, "its key did not match it"),
        (sign_elsewhere, "it was not signed by etcd-peer-ca"),
    ],
    ids=["no crt", "no key", "garbage", "empty", "garbage key", "other key", "other authority"],
)
def test_what_is_broken_is_issued_again_and_the_rest_is_not_touched(
    directory: Path, harm: Callable[[Path], object], why: str
) -> None:
    others = {name: each for name, each in state(directory).items() if not name.startswith("etcd-a-peer.")}
    harm(directory)

    (news,) = synced(directory)

    assert news.startswith(f"etcd-a-peer: issued, {why}")
    assert synced(directory) == []
    assert {name: each for name, each in state(directory).items() if name in others} == others
    assert (directory / "etcd-a-peer.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            replace(WANTED["etcd-a-peer"], names=("etcd-a.internal.dev", "localhost")),
            "its names were wrong: 127.0.0.1 too many",
        ),
        (replace(WANTED["etcd-a-peer"], names=(*WANTED["etcd-a-peer"].names, "x")), "its names were wrong: x missing"),
        (replace(WANTED["etcd-a-peer"], names=()), "its names were wrong"),
        (replace(WANTED["etcd-a-peer"], common_name="etcd-b"), "it had another subject"),
        (replace(WANTED["etcd-a-peer"], organizations=("system:masters",)), "it had another subject"),
        (replace(WANTED["etcd-a-peer"], usages=("server auth",)), "it was for other usages"),
        (replace(WANTED["etcd-a-peer"], authority="etcd-client-ca"), "it was not signed by etcd-client-ca"),
    ],
)
def test_what_is_no_longer_what_the_configuration_asks_for_is_issued_again(
    directory: Path, changed: CertificateWanted, why: str
) -> None:
    (news,) = synced(directory, peer=changed)

    assert news.startswith(f"etcd-a-peer: issued, {why}")
    assert synced(directory, peer=changed) == []


def test_another_way_to_write_an_address_is_no_reason(directory: Path) -> None:
    odd = replace(WANTED["etcd-a-peer"], names=("etcd-a.internal.dev", "0:0:0:0:0:0:0:1"))
    synced(directory, peer=odd)

    assert synced(directory, peer=odd) == []
    assert synced(directory, peer=replace(odd, names=("::1", "etcd-a.internal.dev"))) == []


@pytest.mark.parametrize(
    ("days", "why"),
    [
        (250, "due to be renewed"),
        (300, "overdue"),
        (400, "expired"),
        (-2, "not valid yet"),
    ],
)
def test_what_is_old_is_issued_again_and_lives_from_then_on(tmp_path: Path, days: int, why: str) -> None:
    signers = authorities("etcd-peer-ca", now=NOW - 30 * DAY)
    wanted = {"etcd-a-peer": a_wanted()}
    sync_certificates(tmp_path, wanted, signers, NOW)
    later = NOW + days * DAY

    assert sync_certificates(tmp_path, wanted, signers, later) == [f"etcd-a-peer: issued, it was {why}"]
    assert parsed((tmp_path / "etcd-a-peer.crt").read_bytes()).not_valid_after_utc.timestamp() == later + 365 * DAY
    assert sync_certificates(tmp_path, wanted, signers, later) == []


def test_a_renewal_keeps_the_key_and_replaces_the_certificate_alone(directory: Path) -> None:
    before = state(directory)
    synced(directory, NOW + 250 * DAY)
    after = state(directory)

    assert {name for name in before if before[name] != after[name]} == {f"{name}.crt" for name in WANTED}


def test_a_pair_that_was_no_good_gets_a_new_key(directory: Path) -> None:
    before = (directory / "etcd-a-peer.key").read_bytes()
    sign_elsewhere(directory)
    elsewhere = (directory / "etcd-a-peer.key").read_bytes()
    synced(directory)

    assert (directory / "etcd-a-peer.key").read_bytes() not in (before, elsewhere)


def test_a_member_waits_for_its_turn_while_its_certificate_is_only_due(tmp_path: Path) -> None:
    wanted = {"etcd-a-peer": a_wanted()}
    renewed = []
    for index in range(3):
        folder = tmp_path / str(index)
        sync_certificates(folder, wanted, SIGNERS, NOW)
        moments = (NOW + 245 * DAY + hour * 3600 for hour in range(72))
        renewed.append(next(now for now in moments if sync_certificates(folder, wanted, SIGNERS, now, Place(index, 3))))

    assert min(abs(a - b) for a in renewed for b in renewed if a is not b) >= 6 * 3600


def test_a_key_that_others_can_read_is_closed_and_kept(directory: Path) -> None:
    before = (directory / "client.key").read_bytes()
    (directory / "client.key").chmod(0o644)

    assert synced(directory) == ["client: its key could be read by others, no longer"]
    assert (directory / "client.key").stat().st_mode & 0o777 == 0o600
    assert (directory / "client.key").read_bytes() == before


def test_an_authority_that_was_replaced_takes_its_certificates_with_it(directory: Path) -> None:
    renewed = SIGNERS | authorities("etcd-peer-ca")

    assert sync_certificates(directory, WANTED, renewed, NOW) == [
        "etcd-peer-ca: written",
        "etcd-a-peer: issued, it was not signed by etcd-peer-ca",
    ]


def test_what_a_crash_left_behind_is_used_up(directory: Path) -> None:
    """Killed between the two names: the certificate is new, the key still old, and a draft lies about."""
    issued = issue(WANTED["etcd-a-peer"], SIGNERS["etcd-peer-ca"], NOW)
    (directory / "etcd-a-peer.crt").write_bytes(issued.certificate)
    (directory / ".etcd-a-peer.key.new").write_bytes(issued.key[:20])
    (directory / ".etcd-a-peer.key.new").chmod(0o644)

    assert synced(directory) == ["etcd-a-peer: issued, its key did not match it"]
    assert not list(directory.glob(".*"))
    assert (directory / "etcd-a-peer.key").stat().st_mode & 0o777 == 0o600


class Away(dict[str, Authority]):
    """A store that does not answer, or refuses."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def __getitem__(self, name: str) -> Authority:
        raise self._error


def test_while_the_store_is_away_what_is_good_is_good_enough(directory: Path) -> None:
    away, before = Away(TryLater("the store does not answer")), state(directory)

    assert sync_certificates(directory, WANTED, away, NOW + DAY) == []
    assert state(directory) == before


def test_while_the_store_is_away_what_is_due_is_told_and_what_is_gone_is_an_error(directory: Path) -> None:
    away = Away(TryLater("the store does not answer"))
    changes = sync_certificates(directory, {"client": WANTED["client"]}, away, NOW + 250 * DAY)
    assert changes == ["client: not issued though it was due to be renewed: the store does not answer"]

    (directory / "client.crt").unlink()
    with pytest.raises(TryLater, match="the store does not answer"):
        sync_certificates(directory, WANTED, away, NOW)
    with pytest.raises(TryLater):
        sync_certificates(directory, {"etcd-a-peer": WANTED["etcd-a-peer"]}, away, NOW + 400 * DAY)


def test_an_authority_that_is_not_there_is_for_a_person(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no authority 'etcd-peer-ca'"):
        sync_certificates(tmp_path, {"etcd-a-peer": a_wanted()}, {}, NOW)
    empty = Authorities(a_keystore(FileStore(tmp_path / "store")))
    with pytest.raises(Refused, match="no authority 'etcd-peer-ca'"):
        sync_certificates(tmp_path, {"etcd-a-peer": a_wanted()}, empty, NOW)
    assert [each.name for each in tmp_path.iterdir()] == []


def test_a_disk_that_cannot_be_written_is_for_later(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(TryLater, match="cannot keep the certificates"):
        sync_certificates(tmp_path / "file", WANTED, SIGNERS, NOW)


def test_a_reader_never_sees_half_a_file(directory: Path) -> None:
    """The rename is atomic: a reader that has the old file open reads all of it, the next one opens the new file."""
    with (directory / "etcd-a-peer.crt").open("rb") as old:
        start = old.read(40)
        assert synced(directory, NOW + 250 * DAY)
        whole = start + old.read()

    assert parsed(whole).serial_number != parsed((directory / "etcd-a-peer.crt").read_bytes()).serial_number
