"""Bootstrap tokens: what a new node shows to ask for its first certificate, and nothing else.

`ID.SECRET`, kept as a Secret of a type of its own. The controller manager takes it away when it has expired, and nobody
is let in with it after that even if nothing takes it away.
"""

from __future__ import annotations

import datetime as dt
import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field

from protokube.addons.value import Tree
from protokube.errors import InvalidRequest

NAMESPACE, TYPE = "kube-system", "bootstrap.kubernetes.io/token"
PREFIX = "bootstrap-token-"
PATH = f"/api/v1/namespaces/{NAMESPACE}/secrets"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
ID_LENGTH, SECRET_LENGTH = 6, 16
ID = re.compile(r"[a-z0-9]{6}")

Pick = Callable[[str], str]
"""One of these letters, such that nobody can guess which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Good for a first certificate until it expires."""

    id: str
    secret: str = field(repr=False)
    expires: dt.datetime | None
    """None: never."""
    description: str = ""

    def __str__(self) -> str:
        return f"{self.id}.{self.secret}"


def new_token(pick: Pick, expires: dt.datetime, description: str = "") -> Token:
    drawn = "".join(pick(LETTERS) for _ in range(ID_LENGTH + SECRET_LENGTH))
    return Token(id=drawn[:ID_LENGTH], secret=drawn[ID_LENGTH:], expires=expires, description=description)


def to_secret(token: Token) -> Tree:
    told = {
        "token-id": token.id,
        "token-secret": token.secret,
        "usage-bootstrap-authentication": "true",
        "description": token.description,
    }
    if token.expires is not None:
        told["expiration"] = token.expires.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": PREFIX + token.id, "namespace": NAMESPACE},
        "type": TYPE,
        "stringData": {name: text for name, text in told.items() if text},
    }


def from_secret(tree: Tree) -> Token | None:
    """As the API shows it; None for a Secret that is no token."""
    data = tree.get("data") or {}
    try:
        told = {name: b64decode(text).decode() for name, text in data.items()}
        expires = dt.datetime.fromisoformat(told["expiration"]) if told.get("expiration") else None
    except (ValueError, TypeError):
        return None
    if tree.get("type") != TYPE or not ID.fullmatch(told.get("token-id", "")):
        return None
    return Token(
        id=told["token-id"],
        secret=told.get("token-secret", ""),
        expires=expires,
        description=told.get("description", ""),
    )


def secret_path(token_id: str) -> str:
    """Where a token lies in the API. For the part before the dot, or for all of it."""
    short = token_id.partition(".")[0]
    if not ID.fullmatch(short):
        raise InvalidRequest(
            f"{short!r} is not the id of a token", want="six small letters or digits", hint="`protokube token list`"
        )
    return f"{PATH}/{PREFIX}{short}"
