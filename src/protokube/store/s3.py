"""A bucket of S3, or of any server with its API (AWS_ENDPOINT_URL and the usual variables apply).

s3fs provides credentials, the connection and its event loop; the three calls below go directly to its client,
because s3fs drops conditions that it does not know, and retries where we must not.

The hard part is retries. A conditional PUT that is retried after a lost reply fails as if another writer had been
faster: botocore, s3fs and aiohttp would each retry it silently, so retries are off in all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from protokube.store import Version
from protokube.store.faults import Kind, fault, need
from protokube.store.lazy_connection import LazyConnection
from protokube.store.objects import ABSENT, Content
from protokube.store.patience import PATIENT, Patience
from protokube.store.s3_errors import HINTS, caught, code_of, kind_of
from protokube.store.wire import words

CONDITION_FAILED = ("PreconditionFailed", "412")
NO_OBJECT = ("NoSuchKey", "404")


class S3Bucket:
    """Implements Bucket with S3's own conditions, If-None-Match and If-Match."""

    def __init__(self, name: str, patience: Patience = PATIENT) -> None:
        self.url = f"s3://{name}"
        self._name = name
        self._patience = patience
        self._connection = LazyConnection(lambda: connect(patience))
        need("s3fs", "s3", self.url)

    def get(self, key: str) -> Content | None:
        doing = f"read {key}"
        with self._explained(doing):
            answer = self._call("get_object", but=NO_OBJECT, Key=key)
            if answer is None:
                return None
            data = self._wait(whole, self._patience.total, body=answer["Body"])
            modified = answer.get("LastModified")
            return Content(
                data,
                Version(self._field(answer, "ETag", doing)),
                modified.timestamp() if modified is not None else None,
            )

    def keys(self, prefix: str) -> Iterator[str]:
        doing, page = f"list {prefix or 'everything'}", dict[str, Any]()
        with self._explained(doing):
            while True:
                answer = self._call("list_objects_v2", Prefix=prefix, **page)
                more = self._field(answer, "IsTruncated", doing)
                yield from (item["Key"] for item in answer.get("Contents", ()))
                if not more:
                    return
                page = {"ContinuationToken": answer["NextContinuationToken"]}

    def write(self, key: str, data: bytes, only_if: Version | None) -> Version | None:
        doing = f"write {key}"
        if only_if is None:
            with self._explained(doing):
                return Version(self._field(self._call("put_object", Key=key, Body=data), "ETag", doing))
        creating = only_if == ABSENT
        condition = {"IfNoneMatch": "*"} if creating else {"IfMatch": str(only_if)}
        # The reply to If-Match on a deleted key is 404; with If-None-Match a 404 would mean something else.
        lost = CONDITION_FAILED if creating else CONDITION_FAILED + NO_OBJECT
        with self._explained(doing, guarded=True):
            answer = self._call("put_object", but=lost, Key=key, Body=data, **condition)
            return None if answer is None else Version(self._field(answer, "ETag", doing, guarded=True))

    def close(self) -> None:
        if connection := self._connection.drop():
            from fsspec.asyn import sync

            sync(connection.files.loop, connection.client.close, timeout=self._patience.connect)

    def _call(self, method: str, but: tuple[str, ...] = (), **arguments: Any) -> Any:
        """The reply; None if it is one of the errors in `but`, which the caller expects."""
        from botocore.exceptions import ClientError

        arguments["Bucket"] = self._name
        limit = self._patience.to_send(arguments.get("Body", b""))
        try:
            return self._wait(getattr(self._connection.get().client, method), limit, **arguments)
        except ClientError as error:
            if code_of(error) in but:
                return None
            raise

    def _wait(self, method: Any, limit: float, **arguments: Any) -> Any:
        from fsspec.asyn import sync

        return sync(self._connection.get().files.loop, method, timeout=limit, **arguments)

    def _field(self, answer: Any, name: str, doing: str, *, guarded: bool = False) -> Any:
        """One field of a reply. The login page of a proxy has status 200 too, and must not count as an empty bucket."""
        if name in answer:
            return answer[name]
        saw = f"a reply without {name}: the server is not S3"
        raise fault(Kind.BROKEN, doing=doing, url=self.url, saw=saw, hints=HINTS, guarded=guarded)

    @contextmanager
    def _explained(self, doing: str, *, guarded: bool = False) -> Iterator[None]:
        try:
            yield
        except caught() as error:
            kind = kind_of(error)
            raise fault(kind, doing=doing, url=self.url, saw=words(error), hints=HINTS, guarded=guarded) from error


async def whole(body: Any) -> bytes:
    """Read a whole body and close it, also after an error: otherwise its connection would stay open."""
    try:
        data: bytes = await body.read()
    finally:
        body.close()
    return data


@dataclass(frozen=True, slots=True)
class Connection:
    """s3fs closes its client when it is garbage-collected, so both are kept together."""

    files: Any
    client: Any


def connect(patience: Patience) -> Connection:
    """s3fs without caches and without retries; it finds credentials as every AWS tool does."""
    from s3fs import S3FileSystem

    settings: dict[str, Any] = {
        "connect_timeout": patience.connect,
        "read_timeout": patience.read,
        "retries": {"total_max_attempts": 1},
        "http_session_cls": session_that_never_repeats(),
    }
    if any(os.environ.get(name) for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")):
        settings["s3"] = {"addressing_style": "path"}  # few S3-compatible servers have a host name per bucket
    files = S3FileSystem(config_kwargs=settings, use_listings_cache=False, skip_instance_cache=True)
    return Connection(files, files.s3)


def session_that_never_repeats() -> type:
    """aiohttp retries a PUT when the connection breaks before the reply, even on a new connection."""
    from aiobotocore.httpsession import AIOHTTPSession  # type: ignore[import-untyped]

    class OnceSession(AIOHTTPSession):  # type: ignore[misc]
        async def _get_session(self, proxy_url: str | None) -> Any:
            session = await super()._get_session(proxy_url)
            session._retry_connection = False  # noqa: SLF001  no public switch; a conformance test counts requests
            return session

    return OnceSession
