"""TSIG keys as values."""

from __future__ import annotations

import base64

import pytest

from protokube.errors import Refused
from protokube.providers.dns.keys import TsigKey, new_key


def test_a_new_key_has_256_random_bits() -> None:
    first, second = new_key("protokube"), new_key("protokube")

    assert len(base64.b64decode(first.secret)) == 32
    assert first.secret != second.secret


def test_a_key_never_prints_its_secret() -> None:
    key = new_key("protokube")

    assert key.secret not in repr(key)
    assert key.secret not in str(key)


def test_the_name_of_a_key_is_a_dns_name() -> None:
    assert TsigKey(name="Proto.Kube.", secret="aGVsbG8=").name == "proto.kube"
    with pytest.raises(Refused):
        TsigKey(name="proto kube", secret="aGVsbG8=")


@pytest.mark.parametrize("secret", ["", "not base64!", "aGVsbG8", "aGVs bG8=", "ü"])
def test_a_secret_that_is_not_base64_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(Refused) as caught:
        TsigKey(name="protokube", secret=secret)

    assert not secret or secret not in str(caught.value)
