"""Sign requests to Amazon, by version 4 of its signatures: pure functions."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Keys:
    """What an account signs with."""

    access: str
    secret: str
    token: str = ""


def signed(
    keys: Keys, method: str, host: str, path: str, query: Mapping[str, str], body: bytes, *,
    region: str, service: str, stamp: str,
) -> Mapping[str, str]:  # fmt: skip
    """The headers that authorise a request; `path` is quoted, `stamp` is `20261119T054500Z`, in UTC."""
    headers = {"host": host, "x-amz-date": stamp} | ({"x-amz-security-token": keys.token} if keys.token else {})
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        [
            method,
            quote(path, safe="/~"),
            encoded(query),
            *(f"{name}:{headers[name]}" for name in sorted(headers)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join([ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    signature = _mac(key, to_sign).hex()
    credential = f"Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "Authorization": f"{ALGORITHM} {credential}"}


def encoded(query: Mapping[str, str]) -> str:
    """The query as it is signed, and sent."""
    return "&".join(f"{quote(name, safe='~')}={quote(query[name], safe='~')}" for name in sorted(query))


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
