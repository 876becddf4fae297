"""Find the key prefixes that take the most space in etcd, at a bounded cost: list keys in pages, sample some values.

All reads are serializable reads of one member, so they need no Raft round trip and work on a full etcd.
"""

from __future__ import annotations

from itertools import zip_longest

from protokube.etcd import MaintainedEtcd
from protokube.members.prefix_sizes import Examples, Share, prefix_of, shares

PAGE, PAGES = 1000, 300
"""Keys in one page; pages. Further keys are not counted."""
PREFIXES, MOST_BYTES = 200, 32 * 2**20
"""Prefixes that are sampled, those with the most keys first; bytes of values that are read in total."""


def biggest(etcd: MaintainedEtcd, endpoint: str) -> tuple[Share, ...]:
    """All sampled prefixes, the largest first. TryLater if the member does not answer."""
    counted: dict[str, Examples] = {}
    start = ""
    for _ in range(PAGES):
        found = etcd.page(endpoint, start, PAGE)
        for each in found:
            counted.setdefault(prefix_of(each.key), Examples()).add(each.key)
        if len(found) < PAGE:
            break
        start = found[-1].key + "\0"
    return shares(counted, _sizes(etcd, endpoint, counted))


def _sizes(etcd: MaintainedEtcd, endpoint: str, counted: dict[str, Examples]) -> dict[str, int]:
    """Read one example of every prefix before the second of any, so that the byte limit hides no prefix."""
    often = sorted(counted.values(), key=lambda each: -each.count)[:PREFIXES]
    sizes: dict[str, int] = {}
    read = 0
    for keys in zip_longest(*(each.keys for each in often)):
        for key in keys:
            if key is None or read >= MOST_BYTES:
                continue
            for each in etcd.page(endpoint, key, 1, values=True):
                if each.key == key:
                    sizes[key] = len((each.key + each.value).encode(errors="surrogateescape"))
                    read += sizes[key]
    return sizes
