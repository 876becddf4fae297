"""Which relative paths a store accepts, and URLs without credentials for messages.

A path is built from names in a spec, so it may be anything. All backends share the strictest rule: they
refuse whatever a file system, S3 or a URL would interpret differently ("..", "//", a NUL).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from protokube.errors import Refused

RESERVED = ".protokube-"  # locks and unfinished files of the file store; hidden everywhere
LONGEST_PART, LONGEST_PATH = 255, 1024  # NAME_MAX of Linux; the longest key of S3 and GCS

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_USERINFO = re.compile(r"(?<=://)[^/\s]*@")


def why_not(path: str) -> str:
    """Why a path is not accepted; empty when it is."""
    if not path:
        return "it is empty"
    if path.startswith("/"):
        return "it is absolute"
    if _CONTROL.search(path):
        return "it holds a control character"
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if length > LONGEST_PATH:
        return f"it is longer than {LONGEST_PATH} bytes"
    return next((reason for part in path.split("/") if (reason := _why_not_part(part))), "")


def _why_not_part(part: str) -> str:
    if not part:
        return "it has an empty part"
    if part in (".", ".."):
        return f'it has the part "{part}"'
    if part.startswith(RESERVED):
        return f'names that start with "{RESERVED}" are the store\'s own'
    if len(part.encode()) > LONGEST_PART:
        return f"a part of it is longer than {LONGEST_PART} bytes"
    return ""


def check_path(path: str) -> str:
    """Return the path. Raises Refused if it could lead outside the store."""
    if reason := why_not(path):
        shown = path if len(path) <= 80 else path[:77] + "..."
        raise Refused(
            f"{shown!r} is not a path inside a store: {reason}",
            want='names joined by "/", such as "dev.example.com/instancegroup/nodes"',
        )
    return path


def check_folder(under: str) -> str:
    """A folder to list: like a path, but empty means the root."""
    return check_path(under) if under else ""


def join(prefix: str, path: str) -> str:
    """A path below a prefix; either may be empty."""
    return f"{prefix}/{path}" if prefix and path else prefix or path


def folders(path: str) -> list[str]:
    """The folders a path lies in, outermost first: "a/b/c" gives "a" and "a/b"."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def check_free(path: str, taken: Iterable[str]) -> None:
    """Refuse a path that would make one name a file and a folder at once."""
    names = set(taken)
    for folder in folders(path):
        if folder in names:
            raise file_or_folder(path, f"{folder} is a file")
    if any(name.startswith(path + "/") for name in names):
        raise file_or_folder(path, f"{path} is a folder")


def file_or_folder(path: str, saw: str) -> Refused:
    """The error for a name that would be both; object stores would allow it, a file system does not."""
    return Refused(f"cannot write {path}: a name is either a file or a folder", saw=saw, hint="use another name")


def scrub(text: str) -> str:
    """The text with credentials in URLs masked."""
    return _USERINFO.sub("***@", text)
