"""There is one authority of a name, however many make it at once, and an agent never makes any."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from protokube.errors import Refused, TryLater
from protokube.pki.authority import Authorities, Authority, ensure_authority, load_authority, make_authority, serial_of
from protokube.pki.keyset import read_keyset
from protokube.store import Store, Stored, Version, layout
from protokube.store.file import FileStore
from unit.pki.builders import DAY, NOW, a_keystore, parsed

NAME = "etcd-peer-ca"
CLUSTER = "dev.example.com"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store")


def test_an_authority_may_sign_certificates_and_nothing_else() -> None:
    certificate = parsed(make_authority(NAME, NOW).certificate)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    constraint = certificate.extensions.get_extension_for_class(x509.BasicConstraints)

    assert constraint.critical
    assert (constraint.value.ca, constraint.value.path_length) == (True, 0)
    assert usage.critical
    assert usage.value.key_cert_sign
    assert usage.value.crl_sign
    assert not usage.value.digital_signature
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_an_authority_is_valid_from_yesterday_for_ten_years() -> None:
    certificate, now = parsed(make_authority(NAME, NOW).certificate), dt.datetime.fromtimestamp(NOW, dt.UTC)

    assert certificate.not_valid_before_utc == now - dt.timedelta(days=1)
    assert certificate.not_valid_after_utc == now + dt.timedelta(days=3650)


def test_an_authority_names_itself_as_its_issuer_in_both_ways() -> None:
    certificate = parsed(make_authority(NAME, NOW).certificate)
    own = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issuer = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value

    assert certificate.subject == certificate.issuer
    assert issuer.key_identifier == own.digest
    certificate.verify_directly_issued_by(certificate)


def test_a_key_is_never_printed() -> None:
    made = make_authority(NAME, NOW)

    assert "PRIVATE" in made.key.decode()
    assert "PRIVATE" not in repr(made)


def test_what_was_made_is_loaded_again(store: FileStore) -> None:
    made = ensure_authority(a_keystore(store), NAME, NOW)

    assert load_authority(a_keystore(store), NAME) == made
    assert ensure_authority(a_keystore(store), NAME, NOW + DAY) == made
    private = serialization.load_pem_private_key(made.key, None)
    assert private.public_key() == parsed(made.certificate).public_key()


def test_it_lies_where_the_original_keeps_it_and_keys_are_their_owners(store: FileStore) -> None:
    made = ensure_authority(a_keystore(store), NAME, NOW)
    serial = serial_of(made.certificate)

    assert list(store.list_paths()) == sorted(
        [
            layout.keyset(CLUSTER, "private", NAME),
            layout.keyset(CLUSTER, "issued", NAME),
            layout.private_key(CLUSTER, NAME, serial),
            layout.certificate(CLUSTER, NAME, serial),
        ]
    )
    assert store.read(layout.certificate(CLUSTER, NAME, serial)).data == made.certificate
    assert b"privateMaterial" not in store.read(layout.keyset(CLUSTER, "issued", NAME)).data
    assert (store.root / layout.private_key(CLUSTER, NAME, serial)).stat().st_mode & 0o077 == 0


def test_clusters_do_not_share_authorities(store: FileStore) -> None:
    one, other = (ensure_authority(a_keystore(store, name), NAME, NOW) for name in ("dev", "prod"))

    assert one.certificate != other.certificate


def test_many_who_make_it_at_once_all_get_the_same_one(store: FileStore) -> None:
    for name in ("first", "second", "third"):
        made: list[Authority] = []
        barrier = threading.Barrier(8)

        def run(name: str = name, made: list[Authority] = made, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            made.append(ensure_authority(a_keystore(store), name, NOW))

        threads = [threading.Thread(target=run) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(made) == 8
        assert len({each.certificate for each in made}) == 1
        assert len([path for path in store.list_paths() if f"/{name}/" in path]) == 4, "losers leave nothing behind"


class Interrupted(FileStore):
    """Killed right after the keyset was written."""

    def create(self, path: str, data: bytes) -> Version:
        if "private" not in path or not path.endswith("keyset.yaml"):
            raise KeyboardInterrupt
        return super().create(path, data)


def test_a_crash_half_way_leaves_one_authority_and_the_next_run_completes_it(store: FileStore) -> None:
    with pytest.raises(KeyboardInterrupt):
        ensure_authority(a_keystore(Interrupted(store.root)), NAME, NOW)
    left = load_authority(a_keystore(store), NAME)

    assert ensure_authority(a_keystore(store), NAME, NOW) == left
    assert len(store.list_paths()) == 4


def test_an_agent_that_finds_none_says_who_makes_it_and_makes_none(store: FileStore) -> None:
    with pytest.raises(Refused, match="there is no authority 'etcd-peer-ca'") as caught:
        load_authority(a_keystore(store), NAME)

    assert "protokube up" in caught.value.hint
    assert list(store.list_paths()) == []


@pytest.mark.parametrize("text", [b"", b"spec: {}", b"\xff\xfe"])
def test_one_that_cannot_be_read_is_not_replaced(store: FileStore, text: bytes) -> None:
    store.put(layout.keyset(CLUSTER, "private", NAME), text)

    with pytest.raises(Refused, match="cannot be read"):
        load_authority(a_keystore(store), NAME)
    with pytest.raises(Refused, match="cannot be read"):
        ensure_authority(a_keystore(store), NAME, NOW)
    assert store.read(layout.keyset(CLUSTER, "private", NAME)).data == text


class Closed(FileStore):
    """Turns every reader away, though it is there."""

    def read(self, path: str) -> Stored:
        raise Refused(f"access to {path} denied")


def test_one_that_we_may_not_read_is_not_taken_for_absent(store: FileStore) -> None:
    ensure_authority(a_keystore(store), NAME, NOW)
    before = store.read(layout.keyset(CLUSTER, "private", NAME)).data

    with pytest.raises(Refused, match="denied"):
        ensure_authority(a_keystore(Closed(store.root)), NAME, NOW)
    with pytest.raises(Refused, match="denied"):
        load_authority(a_keystore(Closed(store.root)), NAME)

    assert store.read(layout.keyset(CLUSTER, "private", NAME)).data == before


class Flaky:
    """Does not answer now and then; counts how often it was read."""

    def __init__(self, store: Store) -> None:
        self.url, self._store = store.url, store
        self.down, self.reads = False, 0

    def read(self, path: str) -> Stored:
        self.reads += 1
        if self.down:
            raise TryLater("the store does not answer")
        return self._store.read(path)

    def create(self, path: str, data: bytes) -> object:
        return self._store.create(path, data)

    def list_paths(self, under: str = "") -> Sequence[str]:
        return self._store.list_paths(under)


def test_authorities_are_read_once_and_remembered_while_the_store_is_away(store: FileStore) -> None:
    made, flaky = ensure_authority(a_keystore(store), NAME, NOW), Flaky(store)
    known = Authorities(a_keystore(flaky))
    flaky.down = True
    with pytest.raises(TryLater):
        _ = known[NAME]
    flaky.down = False

    assert [known[NAME], known[NAME]] == [made, made]
    assert flaky.reads == 2
    assert list(known) == [NAME]
    assert len(known) == 1


def test_the_keyset_holds_certificate_and_key_together(store: FileStore) -> None:
    made = ensure_authority(a_keystore(store), NAME, NOW)

    assert read_keyset(store.read(layout.keyset(CLUSTER, "private", NAME)).data) == (made.certificate, made.key)
