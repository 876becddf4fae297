"""Bootstrap tokens: one new node authenticates with it to request its first certificate, and for nothing else.

`ID.SECRET`, stored as a Secret of type `bootstrap.kubernetes.io/token`. The controller manager deletes it once it has
expired; an expired token is not accepted even if it still exists.
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
NODE_ANNOTATION = "protokube.io/node"
"""The node that a token was created for. Kubernetes checks the fields of such a Secret, and has none for it."""
NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")

Pick = Callable[[str], str]
"""Picks one of the letters at random, cryptographically secure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Valid for requesting a first certificate until it expires."""

    id: str
    secret: str = field(repr=False)
    expires: dt.datetime | None
    """None: never."""
    node: str = ""
    """Its name. Without one, nothing is approved for the token."""
    description: str = ""

    def __str__(self) -> str:
        return f"{self.id}.{self.secret}"


def new_token(pick: Pick, node: str, expires: dt.datetime, description: str = "") -> Token:
    if not NODE.fullmatch(node):
        raise InvalidRequest(
            f"{node!r} cannot be the name of a node",
            want="1 to 63 lower-case letters, digits, `-` and `.`; a letter or digit first and last",
            hint="the host name of the machine, in lower case, unless its kubelet has --hostname-override",
        )
    drawn = "".join(pick(LETTERS) for _ in range(ID_LENGTH + SECRET_LENGTH))
    return Token(id=drawn[:ID_LENGTH], secret=drawn[ID_LENGTH:], expires=expires, node=node, description=description)


def to_secret(token: Token) -> Tree:
    fields = {
        "token-id": token.id,
        "token-secret": token.secret,
        "usage-bootstrap-authentication": "true",
        "description": token.description,
    }
    if token.expires is not None:
        fields["expiration"] = token.expires.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": PREFIX + token.id,
            "namespace": NAMESPACE,
            "annotations": {NODE_ANNOTATION: token.node},
        },
        "type": TYPE,
        "stringData": {name: text for name, text in fields.items() if text},
    }


def from_secret(tree: Tree) -> Token | None:
    """Read a Secret from the API; None if it is not a bootstrap token."""
    data = tree.get("data") or {}
    try:
        fields = {name: b64decode(text).decode() for name, text in data.items()}
        expires = dt.datetime.fromisoformat(fields["expiration"]) if fields.get("expiration") else None
    except (ValueError, TypeError):
        return None
    if tree.get("type") != TYPE or not ID.fullmatch(fields.get("token-id", "")):
        return None
    if expires is not None and expires.tzinfo is None:  # Kubernetes takes no time without a zone either
        return None
    annotations = (tree.get("metadata") or {}).get("annotations") or {}
    return Token(
        id=fields["token-id"],
        secret=fields.get("token-secret", ""),
        expires=expires,
        node=str(annotations.get(NODE_ANNOTATION, "")),
        description=fields.get("description", ""),
    )


def secret_path(token_id: str) -> str:
    """The API path of a token's Secret, from its id or the whole token."""
    short = token_id.partition(".")[0]
    if not ID.fullmatch(short):
        raise InvalidRequest(
            f"{short!r} is not the id of a token",
            want="six lower-case letters or digits",
            hint="`protokube token list`",
        )
    return f"{PATH}/{PREFIX}{short}"
