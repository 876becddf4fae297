"""A read-only store behind a plain web server.

HTTP has no way to list a folder and no agreed way to write conditionally, so both are refused explicitly
instead of being guessed from HTML. Credentials are removed from the URL before it is printed anywhere.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from protokube.errors import Refused
from protokube.store import NotThere, Stored, Version
from protokube.store.faults import Kind, fault, need
from protokube.store.lazy_connection import LazyConnection
from protokube.store.paths import check_folder, check_path
from protokube.store.patience import PATIENT, Patience
from protokube.store.wire import kind_of_error, kind_of_status, words

HINTS: Mapping[Kind, str] = {
    Kind.DENIED: "put the name and password into the URL (https://name:password@host/), or correct the server's rules",
}


class HttpStore:
    """Implements the reading half of Store."""

    guards = False

    def __init__(self, url: str, patience: Patience = PATIENT) -> None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self.url = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
        user = (unquote(parts.username or ""), unquote(parts.password or "")) if "@" in parts.netloc else None
        self._patience = patience
        self._connection = LazyConnection(lambda: connect(patience, user))
        need("aiohttp", "http", self.url)

    def read(self, path: str) -> Stored:
        check_path(path)
        data = self._patience.ask(lambda: self._get(path))
        return Stored(path=path, data=data, version=Version(hashlib.sha256(data).hexdigest()))

    def list_paths(self, under: str = "") -> Sequence[str]:
        check_folder(under)
        raise Refused(
            f"cannot list {under or 'everything'} in {self.url}: a web server does not list its files",
            hint="ask for paths by name, or open the store by its file://, s3:// or gs:// URL",
        )

    def create(self, path: str, data: bytes) -> Version:  # noqa: ARG002
        raise self._read_only("create", path)

    def replace(self, path: str, data: bytes, seen: Version) -> Version:  # noqa: ARG002
        raise self._read_only("replace", path)

    def put(self, path: str, data: bytes) -> bool:  # noqa: ARG002
        raise self._read_only("write", path)

    def close(self) -> None:
        if files := self._connection.drop():
            from fsspec.asyn import sync

            session = sync(files.loop, files.set_session)
            sync(files.loop, session.close, timeout=self._patience.connect)

    def _get(self, path: str) -> bytes:
        import aiohttp

        try:
            content: bytes = self._connection.get().cat_file(f"{self.url}/{quote(path)}")
        except FileNotFoundError as missing:
            raise NotThere(path, self.url) from missing
        except (aiohttp.ClientError, TimeoutError) as error:
            status = error.status if isinstance(error, aiohttp.ClientResponseError) else None
            kind = kind_of_error(error) if status is None else kind_of_status(status)
            raise fault(kind, doing=f"read {path}", url=self.url, saw=words(error), hints=HINTS) from error
        return content

    def _read_only(self, verb: str, path: str) -> Refused:
        check_path(path)
        return Refused(
            f"cannot {verb} {path} in {self.url}: a store over HTTP can only be read",
            want="a store that can be written: file://, s3:// or gs://",
            hint="write through the URL behind the web server, and use this one for machines that only read it",
        )


def connect(patience: Patience, user: tuple[str, str] | None) -> Any:
    """fsspec's HTTP client, with timeouts, and with the proxies of the environment."""
    from aiohttp import ClientTimeout
    from fsspec.implementations.http import HTTPFileSystem

    limits = ClientTimeout(total=patience.total, sock_connect=patience.connect, sock_read=patience.read)
    settings: dict[str, Any] = {"timeout": limits, "trust_env": True}
    if user is not None:
        settings["headers"] = {"Authorization": "Basic " + b64encode(":".join(user).encode()).decode()}
    return HTTPFileSystem(client_kwargs=settings, encoded=True, use_listings_cache=False, skip_instance_cache=True)
