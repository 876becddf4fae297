"""Signatures of requests to Amazon, beside those of Amazon's own library."""

from __future__ import annotations

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from protokube.providers.clients.aws_signature import Keys, encoded, signed

WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=12)


def by_both(keys: Keys, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[str, str]:
    """Our signature and Amazon's, of the same second."""
    url = f"https://route53.amazonaws.com{path}" + (f"?{encoded(query)}" if query else "")
    request = AWSRequest(method, url, data=body)
    SigV4Auth(Credentials(keys.access, keys.secret, keys.token or None), "route53", "us-east-1").add_auth(request)
    ours = signed(
        keys, method, "route53.amazonaws.com", path, query, body,
        region="us-east-1", service="route53", stamp=request.headers["X-Amz-Date"],
    )  # fmt: skip
    return ours["Authorization"], str(request.headers["Authorization"])


@pytest.mark.parametrize("token", ["", "a/token+of=STS"])
@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("GET", "/2013-04-01/hostedzone", {}, b""),
        ("GET", "/2013-04-01/hostedzone/Z1/rrset", {"name": "\\052.example.com.", "maxitems": "20"}, b""),
        ("POST", "/2013-04-01/hostedzone/Z1/rrset/", {}, "<Value>ü</Value>".encode()),
        ("GET", "/2013-04-01/hostedzone/a%2Fb/rrset", {"type": "A"}, b""),
        ("GET", "/", {"a": "1", "a-b": "2", "[": "3"}, b""),
    ],
)
def test_a_request_is_signed_as_amazon_does_it(
    token: str, method: str, path: str, query: dict[str, str], body: bytes
) -> None:
    keys = Keys("AKIA", "se/cret", token)

    ours, theirs = by_both(keys, method, path, query, body)

    assert ours == theirs


@given(WORDS, st.dictionaries(WORDS, WORDS, max_size=4), st.binary(max_size=50))
def test_whatever_is_asked_for_is_signed_as_amazon_does_it(secret: str, query: dict[str, str], body: bytes) -> None:
    ours, theirs = by_both(Keys("AKIA", secret), "GET", "/x", query, body)

    assert ours == theirs
