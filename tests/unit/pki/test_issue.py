"""A certificate is what was asked for, for a year, and others than us think so too."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from protokube.errors import Refused
from protokube.pki.authority import Authority, make_authority
from protokube.pki.issue import issue
from unit.pki.builders import DAY, NOW, a_wanted, parsed

CA = make_authority("etcd-peer-ca", NOW)


def test_names_are_names_and_addresses_are_addresses() -> None:
    issued = parsed(issue(a_wanted(names=("etcd-a.internal.dev", "127.0.0.1", "::1")), CA, NOW).certificate)
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == ["etcd-a.internal.dev"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address(each) for each in ("127.0.0.1", "::1")]


def test_the_subject_is_the_common_name_and_the_groups() -> None:
    wanted = a_wanted("kube-apiserver", organizations=("system:masters", "others"), names=(), usages=("client auth",))
    issued = parsed(issue(wanted, CA, NOW).certificate)

    assert [each.value for each in issued.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["kube-apiserver"]
    groups = [each.value for each in issued.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert groups == ["system:masters", "others"]
    with pytest.raises(x509.ExtensionNotFound):
        issued.extensions.get_extension_for_class(x509.SubjectAlternativeName)


def test_it_is_good_for_its_usages_and_may_sign_nothing() -> None:
    issued = parsed(issue(a_wanted(usages=("client auth",)), CA, NOW).certificate)
    usage = issued.extensions.get_extension_for_class(x509.KeyUsage)

    assert list(issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.CLIENT_AUTH
    ]
    assert usage.critical
    assert usage.value.digital_signature
    assert not usage.value.key_cert_sign
    assert not issued.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


@pytest.mark.parametrize("lifetime", [999999999 * DAY, 1e300, float("inf")])
def test_a_life_beyond_all_dates_ends_with_the_authority(lifetime: float) -> None:
    issued = parsed(issue(a_wanted(), CA, NOW, lifetime).certificate)

    assert issued.not_valid_after_utc == parsed(CA.certificate).not_valid_after_utc


def test_it_is_valid_from_yesterday_for_a_year_or_as_long_as_was_asked() -> None:
    now = dt.datetime.fromtimestamp(NOW, dt.UTC)
    year, hour = (parsed(issue(a_wanted(), CA, NOW, *more).certificate) for more in ((), (3600.0,)))

    assert year.not_valid_before_utc == now - dt.timedelta(days=1)
    assert year.not_valid_after_utc == now + dt.timedelta(days=365)
    assert hour.not_valid_after_utc == now + dt.timedelta(hours=1)


def test_it_never_outlives_its_authority_and_none_is_issued_after_that() -> None:
    end = parsed(CA.certificate).not_valid_after_utc

    assert parsed(issue(a_wanted(), CA, end.timestamp() - DAY).certificate).not_valid_after_utc == end
    with pytest.raises(Refused, match="cannot sign now"):
        issue(a_wanted(), CA, end.timestamp() + 1)


def test_a_clock_far_behind_the_authority_is_refused_and_one_a_little_behind_is_not() -> None:
    with pytest.raises(Refused, match="cannot sign now") as caught:
        issue(a_wanted(), CA, NOW - 2 * DAY)

    assert "clock" in caught.value.hint
    early = parsed(issue(a_wanted(), CA, NOW - DAY / 2).certificate)
    assert early.not_valid_before_utc == parsed(CA.certificate).not_valid_before_utc


def test_every_certificate_has_its_own_key_and_number() -> None:
    one, other = (issue(a_wanted(), CA, NOW) for _ in range(2))

    assert one.key != other.key
    assert parsed(one.certificate).serial_number != parsed(other.certificate).serial_number
    key = serialization.load_pem_private_key(one.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.public_key() == parsed(one.certificate).public_key()
    assert "PRIVATE" not in repr(one)


def test_a_key_that_is_given_is_used() -> None:
    first = issue(a_wanted(), CA, NOW)
    again = issue(a_wanted(), CA, NOW, key=first.key)

    assert again.key == first.key
    assert again.certificate != first.certificate
    assert parsed(again.certificate).public_key() == parsed(first.certificate).public_key()


def test_a_key_of_another_kind_is_not_used() -> None:
    plain = serialization.NoEncryption()
    other = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain
    )

    with pytest.raises(TypeError, match="another kind"):
        issue(a_wanted(), CA, NOW, key=other)


def test_it_points_at_its_authority() -> None:
    issued = parsed(issue(a_wanted(), CA, NOW).certificate)
    issuer = issued.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    own = parsed(CA.certificate).extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value

    assert issuer.key_identifier == own.digest
    issued.verify_directly_issued_by(parsed(CA.certificate))


def test_an_authority_of_the_original_which_is_rsa_and_marks_itself_less_signs_too(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes-ca")])
    now = dt.datetime.fromtimestamp(NOW, dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = (
        builder.serial_number(1).not_valid_before(now - dt.timedelta(days=2)).not_valid_after(now.replace(year=2036))
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    plain = serialization.NoEncryption()
    original = Authority(
        name="kubernetes-ca",
        certificate=builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain),
    )

    issued = issue(a_wanted(), original, NOW)

    parsed(issued.certificate).verify_directly_issued_by(parsed(original.certificate))


def test_a_usage_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Refused, match="code signing"):
        issue(a_wanted(usages=("code signing",)), CA, NOW)


def test_two_who_trust_the_same_authority_shake_hands(tmp_path: Path) -> None:
    now = time.time()
    authority = make_authority("etcd-peer-ca", now)
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    contexts = []
    for name, protocol in (("server", ssl.PROTOCOL_TLS_SERVER), ("client", ssl.PROTOCOL_TLS_CLIENT)):
        issued = issue(a_wanted(name, names=("etcd-a.internal.dev",)), authority, now)
        (tmp_path / f"{name}.crt").write_bytes(issued.certificate)
        (tmp_path / f"{name}.key").write_bytes(issued.key)
        context = ssl.SSLContext(protocol)
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_verify_locations(tmp_path / "ca.crt")
        context.load_cert_chain(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
        contexts.append(context)
    theirs, ours = socket.socketpair()
    answered: list[bytes] = []

    def serve() -> None:
        with contexts[0].wrap_socket(theirs, server_side=True) as secure:
            answered.append(secure.recv(5))

    far = threading.Thread(target=serve)
    far.start()
    with contexts[1].wrap_socket(ours, server_hostname="etcd-a.internal.dev") as secure:
        secure.sendall(b"hello")
    far.join()

    assert answered == [b"hello"]
