"""Signatures of requests to Amazon, beside those of Amazon's own library."""

from __future__ import annotations

import datetime as dt
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from protokube.providers.clients.aws_signature import Keys, encoded, signed

NOW = dt.datetime(2026, 11, 19, 5, 45, 11, tzinfo=dt.UTC)
STAMP = "20261119T054511Z"
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=12)


def by_amazon(keys: Keys, method: str, path: str, query: dict[str, str], body: bytes) -> str:
    url = f"https://route53.amazonaws.com{path}" + (f"?{encoded(query)}" if query else "")
    request = AWSRequest(method, url, data=body)
    with patch("botocore.auth.get_current_datetime", return_value=NOW.replace(tzinfo=None)):
        SigV4Auth(Credentials(keys.access, keys.secret, keys.token or None), "route53", "us-east-1").add_auth(request)
    return str(request.headers["Authorization"])


def by_us(keys: Keys, method: str, path: str, query: dict[str, str], body: bytes) -> str:
    return signed(
        keys, method, "route53.amazonaws.com", path, query, body, region="us-east-1", service="route53", stamp=STAMP
    )["Authorization"]


@pytest.mark.parametrize("token", ["", "a/token+of=STS"])
@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("GET", "/2013-04-01/hostedzone", {}, b""),
        ("GET", "/2013-04-01/hostedzone/Z1/rrset", {"name": "\\052.example.com.", "maxitems": "20"}, b""),
        ("POST", "/2013-04-01/hostedzone/Z1/rrset/", {}, "<Value>ü</Value>".encode()),
        ("GET", "/2013-04-01/hostedzone/a%2Fb/rrset", {"type": "A"}, b""),
    ],
)
def test_a_request_is_signed_as_amazon_does_it(
    token: str, method: str, path: str, query: dict[str, str], body: bytes
) -> None:
    keys = Keys("AKIA", "se/cret", token)

    assert by_us(keys, method, path, query, body) == by_amazon(keys, method, path, query, body)


@given(WORDS, st.dictionaries(WORDS, WORDS, max_size=4), st.binary(max_size=50))
def test_whatever_is_asked_for_is_signed_as_amazon_does_it(secret: str, query: dict[str, str], body: bytes) -> None:
    keys = Keys("AKIA", secret)

    assert by_us(keys, "GET", "/x", query, body) == by_amazon(keys, "GET", "/x", query, body)
