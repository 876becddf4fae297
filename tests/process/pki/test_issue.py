"""A certificate is what was asked for, for a year, and others than us think so too."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.pki.authority import make_authority
from protokube.pki.issue import issue
from unit.pki.builders import DAY, NOW, a_wanted, openssl_says

CA = make_authority("etcd-peer-ca", NOW)


@pytest.mark.parametrize(
    ("usages", "purpose", "good"),
    [
        (("server auth",), "sslserver", True),
        (("client auth",), "sslclient", True),
        (("client auth",), "sslserver", False),
        (("server auth",), "sslclient", False),
        (("server auth", "client auth"), "sslserver", True),
    ],
)
def test_openssl_agrees_on_what_it_is_good_for(
    tmp_path: Path, usages: tuple[str, ...], purpose: str, good: bool
) -> None:
    issued = issue(a_wanted(usages=usages), CA, NOW)

    assert (openssl_says(tmp_path, issued.certificate, CA.certificate, purpose, NOW) == "OK") == good


def test_openssl_turns_down_what_has_expired_or_is_of_another_authority(tmp_path: Path) -> None:
    issued, other = issue(a_wanted(), CA, NOW), make_authority("etcd-peer-ca", NOW)

    assert "expired" in openssl_says(tmp_path, issued.certificate, CA.certificate, "sslserver", NOW + 366 * DAY)
    assert openssl_says(tmp_path, issued.certificate, other.certificate, "sslserver", NOW) != "OK"
