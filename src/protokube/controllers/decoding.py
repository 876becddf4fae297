"""Which objects a controller lists and watches, and which of their fields it decodes; it never keeps the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from protokube.errors import TryLater

PAGE = "500"
T = TypeVar("T")
W = TypeVar("W")  # an object as it comes over the wire


class Stale(TryLater):
    """The cache may have missed changes; only a complete relist repairs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """One kind of object, in all namespaces or in one."""

    name: str
    """For people: `pods`."""
    path: str
    """`/api/v1/pods`"""
    read: Callable[[bytes | msgspec.Raw], T | None]
    """Decode what to keep of an object; None if the cache should not hold it at all."""
    query: Mapping[str, str] = field(default_factory=dict)
    """`{"fieldSelector": ...}`"""


def reader(of: type[W], keep: Callable[[W], T | None]) -> Callable[[bytes | msgspec.Raw], T | None]:
    """Make a `Kind.read`: decode into a struct with only the needed fields, then `keep` a value of it or None."""
    decode = msgspec.json.Decoder(of).decode
    return lambda content: keep(decode(content))


class Meta(msgspec.Struct, gc=False):
    """The metadata that every object has."""

    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815  # as the API calls it

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Object(msgspec.Struct, gc=False):
    metadata: Meta


class _ListMeta(msgspec.Struct, gc=False):
    resourceVersion: str = ""  # noqa: N815
    token: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct):
    """One page of a list."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class Line(msgspec.Struct):
    """One event of a watch."""

    type: str
    object: msgspec.Raw


_PAGE, _LINE, _OBJECT = (msgspec.json.Decoder(each) for each in (Page, Line, _Object))


def page_of(content: bytes) -> Page:
    found: Page = _decoded(_PAGE, content, "a page of the list")
    return found


def pages(get: Callable[[Mapping[str, str]], bytes]) -> Iterator[Page]:
    """Page through a list; `get` fetches one page for its query parameters."""
    token = ""
    while True:
        page = page_of(get({"limit": PAGE} | ({"continue": token} if token else {})))
        yield page
        token = page.metadata.token
        if not token:
            return


def line_of(content: bytes) -> Line:
    found: Line = _decoded(_LINE, content, "a line of the watch")
    return found


def meta_of(content: msgspec.Raw) -> Meta:
    found: Meta = _decoded(_OBJECT, content, "an object").metadata
    return found


def read_object(kind: Kind[T], content: msgspec.Raw) -> T | None:
    try:
        return kind.read(content)
    except msgspec.MsgspecError as error:
        raise Stale(f"{kind.name} {meta_of(content).key} cannot be read: {error}") from error


def _decoded(decoder: Any, content: bytes | msgspec.Raw, what: str) -> Any:
    try:
        return decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Stale(f"{what} cannot be read: {error}") from error
