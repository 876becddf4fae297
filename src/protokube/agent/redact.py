"""Remove what looks like a secret from a document before it leaves this machine. Pure.

Nothing of a status is made from keys or tokens. But it quotes errors of other programs, and those may quote anything.
So each text is searched for the forms that secrets have; one that is not a secret may be hit, which costs a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LONGEST = 2000
"""Characters that are kept of one text."""
REMOVED = "[removed]"
SECRETS = (
    re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|\Z)", re.DOTALL),  # PEM, also if it is cut off
    re.compile(r"\beyJ[\w-]{8,}\.[\w.-]*"),  # JSON web tokens
    re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b"),  # bootstrap tokens
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),  # credentials in a URL
    re.compile(r"(?i)(?<=bearer )\S+"),
    re.compile(r"(?i)\b((?:\w*(?:password|passwd|secret|token))[\"']?\s*[=:]\s*[\"']?)[^\s\"',;]+"),
    re.compile(r"(?=[A-Za-z0-9+/]*[A-Z])(?=[A-Za-z0-9+/]*[a-z])(?=[A-Za-z0-9+/]*\d)[A-Za-z0-9+/]{40,}={0,2}"),  # base64
)


def redacted(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in tree.items()}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return redacted(value)
    return [_value(each) for each in value] if isinstance(value, list | tuple) else value


def text(value: str) -> str:
    for each in SECRETS:
        value = each.sub(lambda found: f"{found[1] if found.re.groups else ''}{REMOVED}", value)
    return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
