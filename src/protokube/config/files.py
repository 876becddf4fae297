"""The user's own files (`fileAssets`) as they come to lie on machines: where, with what in them, and on whose."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

ASSETS = "/srv/kubernetes/assets"
"""Where the original puts a file whose place is not said."""
USUAL_MODE = "0440"
MODE = re.compile(r"0?[4-7][0-7]{2}")
"""Whoever owns a file may read it; nothing above 0777, since no file of a user's should lend its owner's rights."""
PADDING = re.compile(r"={1,2}\Z")


def place(name: str, told: Mapping[str, Any]) -> str:
    return str(told.get("path") or f"{ASSETS}/{name}")


def content(told: Mapping[str, Any]) -> bytes:
    """Raises ValueError for what is called base64 and is not.

    The original takes base64 only without its padding, everybody else writes it with: both are good.
    """
    text = str(told["content"])
    if not told.get("isBase64"):
        return text.encode()
    bare = PADDING.sub("", "".join(text.split()))
    return b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def mode(told: Mapping[str, Any]) -> int:
    """Raises ValueError for what is no mode of a file."""
    text = str(told.get("mode") or USUAL_MODE)
    if not MODE.fullmatch(text):
        raise ValueError(f"{text!r} is not the mode of a file")
    return int(text, 8)


def is_for(told: Mapping[str, Any], role: str) -> bool:
    """No roles are all roles, as in the original."""
    return not told.get("roles") or role in told["roles"]
