"""One request to Google Cloud Storage, sent once, with the credentials and the endpoint that gcsfs found."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from protokube.store.faults import Kind
from protokube.store.patience import Patience
from protokube.store.wire import kind_of_error


@dataclass(frozen=True, slots=True)
class Answer:
    """One complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any] | None:
        """The body as a JSON object; None if it is something else, such as the login page of a proxy."""
        with suppress(ValueError):
            document = json.loads(self.body)
            return document if isinstance(document, dict) else None
        return None

    @property
    def words(self) -> str:
        """The text of an error reply: JSON with a message, or plain text."""
        error = (self.json() or {}).get("error")
        text = error.get("message") if isinstance(error, dict) else self.body.decode(errors="replace")
        return f"HTTP {self.status} {' '.join(str(text).split())[:300]}".rstrip()


def connect(patience: Patience) -> Any:
    """gcsfs without caches. An emulator gets no credentials, as with Google's own libraries."""
    from aiohttp import ClientTimeout
    from gcsfs import GCSFileSystem

    limits = ClientTimeout(total=patience.total, sock_connect=patience.connect, sock_read=patience.read)
    return GCSFileSystem(
        project="",
        token="anon" if os.environ.get("STORAGE_EMULATOR_HOST") else "google_default",
        session_kwargs={"timeout": limits, "trust_env": True},
        use_listings_cache=False,
        skip_instance_cache=True,
    )


async def request(files: Any, method: str, place: str, parameters: Mapping[str, str], data: bytes | None) -> Answer:
    """Send a request to a path below the endpoint ("storage/v1/b/bucket/o")."""
    headers: dict[str, str] = {}
    await asyncio.to_thread(files.credentials.apply, headers)  # may call a token server, and blocks meanwhile
    session = await files._set_session()  # noqa: SLF001  the public calls of gcsfs retry
    url = files.base.removesuffix("storage/v1/") + place
    async with session.request(method, url, params=parameters, headers=headers, data=data) as response:
        return Answer(response.status, response.headers, await response.read())


def time_of(header: str | None) -> float | None:
    """A time as HTTP writes it, in seconds since 1970; None if there is none, or something else."""
    with suppress(ValueError):
        return parsedate_to_datetime(header).timestamp() if header else None
    return None


def caught() -> tuple[type[Exception], ...]:
    """Every exception that a request may raise."""
    from aiohttp import ClientError
    from gcsfs.retry import HttpError, NonRetryableError
    from google.auth.exceptions import GoogleAuthError

    return (ClientError, TimeoutError, HttpError, NonRetryableError, GoogleAuthError)


def kind_of(error: BaseException) -> Kind:
    """The kind of an exception. Credentials are fetched first, so their errors mean that nothing was sent."""
    from aiohttp import ClientError
    from google.auth.exceptions import GoogleAuthError, TransportError

    if isinstance(error, ClientError | TimeoutError):
        return kind_of_error(error)
    root = error.__cause__ if isinstance(error.__cause__, GoogleAuthError) else error
    away = isinstance(root, TransportError) or getattr(root, "retryable", False)
    return Kind.AWAY if away else Kind.DENIED
