"""Open the store of a URL, by its scheme.

Opening makes no connection and no folder. An invalid URL is refused here; a missing store fails on first use.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from protokube.errors import Refused
from protokube.store import Store
from protokube.store.paths import check_path, scrub
from protokube.store.patience import PATIENT, Patience

SCHEMES = ("file", "memory", "s3", "gs", "http", "https")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")


def open_store(url: str, patience: Patience = PATIENT) -> Store:
    """The store at a URL, or at a bare path of this machine."""
    found = _SCHEME.match(url)
    if found is None:
        return _open_file(url, url, patience)
    scheme, rest = found[1].lower(), url[found.end() :]
    if scheme not in SCHEMES:
        raise unknown(scheme, url)
    if not found[2]:
        raise _refuse(url, f'after "{found[1]}:" there is no "//"', f"{scheme}://{rest.lstrip('/')}")
    match scheme:
        case "file":
            return _open_file(unquote(rest), url, patience)
        case "memory":
            from protokube.store.memory import MemoryStore

            return MemoryStore(*_name_and_prefix(rest, url))
        case "s3":
            from protokube.store.objects import ObjectStore
            from protokube.store.s3 import S3Bucket

            name, prefix = _name_and_prefix(rest, url)
            return ObjectStore(S3Bucket(name, patience), prefix, patience)
        case "gs":
            from protokube.store.gs import GsBucket
            from protokube.store.objects import ObjectStore

            name, prefix = _name_and_prefix(rest, url)
            return ObjectStore(GsBucket(name, patience), prefix, patience)
        case _:
            return _open_http(url, patience)


def unknown(scheme: str, url: str) -> Refused:
    """The error for a scheme we do not have, with the one that was probably meant."""
    near = difflib.get_close_matches(scheme, SCHEMES, n=1, cutoff=0.5)
    return Refused(
        f'cannot open {scrub(url)}: there is no store of the kind "{scheme}"',
        want=", ".join(f"{name}://" for name in SCHEMES) + ", or a path of this machine",
        hint=f"did you mean {near[0]}://?" if near else "",
    )


def _open_file(path: str, url: str, patience: Patience) -> Store:
    from protokube.store.file import FileStore

    if not path or "\0" in path:
        raise _refuse(url, "it names no folder", "file:///var/lib/protokube/state, or a path")
    if path != url and not path.startswith("/"):
        raise _refuse(url, "a file:// URL has three slashes", f"file:///{path}, or the path alone")
    return FileStore(Path(path), patience)


def _open_http(url: str, patience: Patience) -> Store:
    from protokube.store.http import HttpStore

    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as wrong:
        raise _refuse(url, str(wrong), "https://host/folder") from wrong
    if not parts.hostname:
        raise _refuse(url, "it names no host", "https://host/folder")
    if parts.query or parts.fragment:
        raise _refuse(url.partition("?")[0].partition("#")[0], 'it goes on after "?" or "#"', "https://host/folder")
    return HttpStore(url, patience)


def _name_and_prefix(rest: str, url: str) -> tuple[str, str]:
    """The bucket and the prefix of "bucket/some/prefix"."""
    name, _, prefix = rest.partition("/")
    scheme = url.partition(":")[0].lower()
    want = f"{scheme}://name, or {scheme}://name/some/prefix"
    if "@" in name:
        raise _refuse(url, "this URL must not have credentials", want)
    if found := re.search(r"[?#]", rest):
        raise _refuse(url.partition(found[0])[0], f'it goes on after "{found[0]}"', want)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]*", name):
        raise _refuse(url, f"{name!r} is not a name", want)
    prefix = prefix.rstrip("/")
    return name, check_path(prefix) if prefix else ""


def _refuse(url: str, saw: str, want: str) -> Refused:
    return Refused(f"cannot open {scrub(url)!r} as a store", saw=saw, want=want)
