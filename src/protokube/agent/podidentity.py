"""Which pod a manifest of somebody else names, as the kubelet would read it."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 1 << 20


class NoPod(Exception):
    """It cannot be read as a pod; the message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file said when it was last read, and what it was then."""

    stamp: tuple[int, ...]
    pod: str = ""
    """`NAMESPACE/NAME`; "" if it is no pod."""
    problem: str = ""


def read(path: Path, known: Reading | None) -> Reading:
    """Links are followed; a file that is the same as before is not read. FileNotFoundError if it leads nowhere."""
    # not to wait for whoever writes into a pipe that has the name of a manifest
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if known is not None and known.stamp == stamp:
            return known
        try:
            if not stat.S_ISREG(status.st_mode):
                raise NoPod("it is no file")
            content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise NoPod(f"it is larger than {LARGEST} bytes")
            return Reading(stamp, identity(content))
        except NoPod as why:
            return Reading(stamp, problem=str(why))


def identity(content: bytes) -> str:
    """Of the first document: the kubelet reads no further."""
    tree = _first(content)
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or tree.get("kind") != "Pod" or not isinstance(metadata, dict):
        raise NoPod("it is no pod")
    if metadata.get("name") in (None, ""):
        raise NoPod("its pod has no name")
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def _first(content: bytes) -> Any:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoPod("it is not UTF-8") from error
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise NoPod("it is not JSON") from error
    import yaml  # on most masters every manifest is ours, and none is read

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return next(iter(yaml.load_all(text, Loader=loader)), None)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise NoPod("it is not YAML") from error
