"""Estimate which key prefixes use the space of an etcd: all keys are counted, only sample values are read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

EXAMPLES = 8
"""Keys of each prefix whose values are read."""


@dataclass(frozen=True, slots=True)
class Share:
    """All keys of one prefix."""

    prefix: str
    keys: int
    bytes: int
    """Estimated from the values of a few of them."""


@dataclass(slots=True)
class Examples:
    """A few keys of one prefix, spread evenly over all of them, however many there are."""

    count: int = 0
    keys: list[str] = field(default_factory=list)
    _stride: int = 1

    def add(self, key: str) -> None:
        if self.count % self._stride == 0:
            self.keys.append(key)
            if len(self.keys) > EXAMPLES:
                self.keys, self._stride = self.keys[::2], 2 * self._stride
        self.count += 1


def prefix_of(key: str) -> str:
    """The kind of a key: `/registry/pods`, `/registry/example.com/widgets`, or the first part of any other path."""
    rooted, parts = key.startswith("/"), [each for each in key.split("/") if each]
    kept = 1
    if rooted and len(parts) > 2:
        kept = 3 if "." in parts[1] and len(parts) > 3 else 2
    return ("/" if rooted else "") + "/".join(parts[:kept])


def shares(counted: Mapping[str, Examples], sizes: Mapping[str, int]) -> tuple[Share, ...]:
    """The largest first. `sizes` are bytes by key; a prefix of which none was read is left out."""

    def each() -> Iterator[Share]:
        for prefix, examples in counted.items():
            seen = [sizes[key] for key in examples.keys if key in sizes]
            if seen:
                yield Share(prefix, examples.count, sum(seen) * examples.count // len(seen))

    return tuple(sorted(each(), key=lambda share: (-share.bytes, share.prefix)))
