"""Credentials that are missing or wrong, certificates that nobody vouches for, and settings that make no sense."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conformance.store.bad_server import BadServer, Reply
from conformance.store.remote import CALM, Open, assert_clear
from protokube.errors import Refused, TryLater
from protokube.store.open import open_store


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with an empty home and no account anywhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that vouches only for itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file


@pytest.mark.parametrize(("url", "command"), [("s3://bucket", "aws sts"), ("gs://bucket", "gcloud auth")])
def test_without_credentials_the_error_says_how_to_get_some(url: str, command: str, stranger: Path) -> None:
    store = open_store(url, CALM)

    for attempt in (lambda: store.read("dev/config"), lambda: store.create("dev/config", b"x")):
        with pytest.raises(Refused, match="does not let us in") as caught:
            attempt()
        assert_clear(caught.value)
        assert command in caught.value.hint
    store.close()


def test_a_profile_that_does_not_exist_is_named(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody-has-this")

    with pytest.raises(Refused) as caught:
        open_store("s3://bucket", CALM).read("dev/config")

    assert_clear(caught.value)
    assert "nobody-has-this" in caught.value.saw


def test_a_key_file_that_does_not_exist_is_named(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(stranger / "missing.json"))

    with pytest.raises(Refused) as caught:
        open_store("gs://bucket", CALM).read("dev/config")

    assert_clear(caught.value)
    assert "missing.json" in caught.value.saw


def test_a_token_server_that_is_away_is_for_later(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = stranger / "user.json"
    account.write_text('{"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # so that no packet leaves the machine

    with pytest.raises(TryLater) as caught:
        open_store("gs://bucket", CALM).create("dev/config", b"x")

    assert_clear(caught.value)


@pytest.mark.parametrize(
    ("kind", "setting"), [("s3", "AWS_CA_BUNDLE"), ("gs", "SSL_CERT_FILE"), ("http", "SSL_CERT_FILE")]
)
def test_a_server_that_nobody_vouches_for_is_refused(kind: str, setting: str, certificate: Path, reach: Open) -> None:
    with BadServer(Reply(200, b"trust me"), certificate) as server:
        with pytest.raises(Refused, match="certificate is not trusted") as caught:
            reach(kind, server.url).read("dev/config")

        assert server.asked == []
    assert_clear(caught.value)
    assert setting in caught.value.hint


def test_a_bundle_of_certificates_that_does_not_exist_leaves_no_doubt(
    certificate: Path, reach: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere/ca.pem")

    with BadServer(Reply(200), certificate) as server, pytest.raises(Refused) as caught:
        reach("s3", server.url).create("dev/config", b"x")

    assert_clear(caught.value)
    assert "AWS_CA_BUNDLE" in caught.value.hint


@pytest.mark.parametrize("endpoint", ["not a url", "http://", "127.0.0.1:9000"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str, reach: Open) -> None:
    with pytest.raises(Refused) as caught:
        reach("s3", endpoint).read("dev/config")

    assert_clear(caught.value)
    assert "AWS_ENDPOINT_URL" in caught.value.hint


def test_an_endpoint_with_a_password_is_not_shown(reach: Open) -> None:
    with pytest.raises(TryLater) as caught:
        reach("s3", "http://me:hunter2@127.0.0.1:9").read("dev/config")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "module", "command"),
    [
        ("s3://bucket", "s3fs", "pip install 'protokube[s3]'"),
        ("gs://bucket", "gcsfs", "pip install 'protokube[gs]'"),
        ("https://host/state", "aiohttp", "pip install 'protokube[http]'"),
    ],
)
def test_a_library_that_is_not_installed_is_named_with_the_command_that_helps(
    url: str, module: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # what Python itself uses for "cannot be imported"

    with pytest.raises(Refused, match=f"{module} is not installed") as caught:
        open_store(url)

    assert_clear(caught.value)
    assert caught.value.hint == command
