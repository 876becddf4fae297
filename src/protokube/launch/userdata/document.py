"""The user data of a machine: its launch script, with parts of the user's as cloud-init reads them. Pure.

A cloud takes 16 KB of it, before it is encoded. cloud-init unpacks gzip by itself, so what is larger is compressed.
"""

from __future__ import annotations

import gzip
from base64 import encodebytes
from collections.abc import Sequence
from dataclasses import dataclass

from protokube.errors import InvalidRequest

LIMIT = 16 * 1024
"""Bytes; EC2's, and the smallest of the clouds."""
SCRIPT = "text/x-shellscript"
TYPES = (
    "text/cloud-boothook", "text/cloud-config", "text/cloud-config-archive", "text/part-handler", "text/upstart-job",
    "text/x-include-once-url", "text/x-include-url", SCRIPT,
)  # fmt: skip
BOUNDARY = "MIMEBOUNDARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of `additionalUserData`."""

    name: str
    type: str
    content: str


def user_data(script: str, parts: Sequence[Part] = (), limit: int = LIMIT) -> bytes:
    """The script alone, or a document with the script first; compressed if it is too large as it is."""
    plain = (multipart(script, parts) if parts else script).encode()
    data = plain if len(plain) <= limit else gzip.compress(plain, 9, mtime=0)
    if len(data) > limit:
        saw = f"{len(data)} bytes, compressed from {len(plain)}"
        hint = "put large parts into a bucket, and include them by `text/x-include-url`"
        raise InvalidRequest("the user data is too large", saw=saw, want=f"{limit} bytes at most", hint=hint)
    return data


def multipart(script: str, parts: Sequence[Part]) -> str:
    """The document, uncompressed."""
    for each in parts:
        if each.type not in TYPES:
            raise InvalidRequest(f"user data {each.name} is of type {each.type!r}", want=", ".join(TYPES))
        if any(letter in each.name for letter in '"\r\n\\'):
            raise InvalidRequest(f"{each.name!r} is no file name for user data")
    everything = [Part(name="protokube.sh", type=SCRIPT, content=script), *parts]
    boundary = BOUNDARY
    while any(boundary in each.content for each in everything):
        boundary += "0"
    head = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{boundary}"\n'
    bodies = "".join(f"\n--{boundary}\n{_part(each)}" for each in everything)
    return f"{head}{bodies}\n--{boundary}--\n"


def _part(part: Part) -> str:
    """Text of other languages is encoded: not everything between us and cloud-init passes eight bits."""
    plain = part.content.isascii()
    body = part.content if plain else encodebytes(part.content.encode()).decode()
    return (
        f'Content-Type: {part.type}; charset="{"us-ascii" if plain else "utf-8"}"\n'
        f"MIME-Version: 1.0\n"
        f"Content-Transfer-Encoding: {'7bit' if plain else 'base64'}\n"
        f'Content-Disposition: attachment; filename="{part.name}"\n\n{body}'
    )
