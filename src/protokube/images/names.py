"""Normalise image names as containerd and the kubelet do. Pure.

The kubelet requests `busybox` as `docker.io/library/busybox:latest`, and containerd compares names exactly: an image
stored under the short name is never found. The rules are those of the Go package distribution/reference.
"""

from __future__ import annotations

import re

REGISTRY, OFFICIAL = "docker.io", "library/"
"""The default registry, and the default repository prefix in it."""
FORMER_REGISTRY = "index.docker.io"
LATEST = "latest"
LONGEST = 255

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_PATH = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_IDENTITY = re.compile(r"[a-f0-9]{64}")


class BadName(ValueError):
    """Not a valid image name."""


def normalise(name: str) -> str:
    """`busybox` becomes `docker.io/library/busybox:latest`; full names stay. BadName if it is invalid."""
    if _IDENTITY.fullmatch(name):
        raise BadName(f"{name!r} is the id of an image, not a name")
    rest, at, digest = name.partition("@")
    domain, path = _split(rest)
    path, colon, tag = path.partition(":")
    if "/" not in path and domain == REGISTRY:
        path = f"{OFFICIAL}{path}"
    wrong = [
        *([f"the registry {domain!r}"] if not _DOMAIN.fullmatch(domain) else []),
        *([f"{path!r}, which may have a-z, 0-9 and . _ - between them"] if not _PATH.fullmatch(path) else []),
        *([f"the tag {tag!r}"] if colon and not _TAG.fullmatch(tag) else []),
        *([f"the digest {digest!r}"] if at and not _DIGEST.fullmatch(digest) else []),
        *([f"more than {LONGEST} characters"] if len(f"{domain}/{path}") > LONGEST else []),
    ]
    if wrong:
        raise BadName(f"{name!r} names no image: {', '.join(wrong)}")
    # with a digest containerd drops the tag
    return f"{domain}/{path}@{digest}" if at else f"{domain}/{path}:{tag or LATEST}"


def _split(name: str) -> tuple[str, str]:
    """Split into registry and rest: a first part without a dot or a port belongs to the default registry."""
    first, slash, rest = name.partition("/")
    if not slash or (not re.search(r"[.:]", first) and first != "localhost" and first == first.lower()):
        return REGISTRY, name
    return (REGISTRY if first == FORMER_REGISTRY else first), rest
