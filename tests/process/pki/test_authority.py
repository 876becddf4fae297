"""There is one authority of a name, however many make it at once, and an agent never makes any."""

from __future__ import annotations

from pathlib import Path

from protokube.pki.authority import make_authority
from unit.pki.builders import DAY, NOW, openssl_says

NAME = "etcd-peer-ca"


def test_openssl_takes_it_for_an_authority(tmp_path: Path) -> None:
    made = make_authority(NAME, NOW).certificate

    assert openssl_says(tmp_path, made, made, "any", NOW) == "OK"
    assert openssl_says(tmp_path, made, made, "any", NOW + 3651 * DAY) != "OK"
