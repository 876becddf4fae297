"""Find protokube unpacked for this Python, unpack it where it is missing, and hand over.

What is hard is trust: whoever can write to the directory we import from runs code as us, and as root on a
master. So a cache counts only if nobody else can change it or anything above it, at every start.

This runs at every start: it imports only what Python has imported already, and leaves the rest to `unpack`.
"""

# pathlib would cost more than everything here.
# ruff: noqa: PTH100, PTH116, PTH117, PTH118, PTH120, PTH123
import os
import stat
import sys
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES

from contents import DIGEST

PYZ = os.path.dirname(os.path.abspath(__file__))
STAMP = ".protokube-files"

# The suffix says Python, machine and libc (".cpython-311-x86_64-linux-gnu.so"): a home directory shared by
# unlike machines holds one directory for each.
NAME = DIGEST + EXTENSION_SUFFIXES[0].removesuffix(".so").replace(".", "-", 1)


class UntrustedError(OSError):
    """Somebody else could change what we would import."""


def start() -> None:
    """Become `protokube`."""
    sys.path[0] = unpacked(caches(os.environ, os.geteuid()))
    from protokube.cli.main import main

    main()


def caches(environ: Mapping[str, str], uid: int) -> list[str]:
    """Where protokube may be unpacked, best first; an explicit wish is the only choice."""
    if asked := environ.get("PROTOKUBE_CACHE"):
        return [os.path.abspath(asked)]
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: a relative path counts as unset
        home = environ.get("HOME", "")
        base = os.path.join(home, ".cache") if os.path.isabs(home) else ""
    found = [os.path.join(base, "protokube")] if base else []
    return [*found, "/var/cache/protokube"] if uid == 0 else found


def unpacked(candidates: list[str]) -> str:
    """The directory to import from: in the first cache that can be used, else a private one for this run."""
    refused: list[str] = []
    for cache in candidates:
        place = os.path.join(os.path.realpath(cache), NAME)
        try:
            check_trust(place, os.geteuid())
            if is_whole(place):
                return place
            import unpack

            return unpack.into_cache(PYZ, place)
        except OSError as why:
            refused.append(str(why))
    import unpack

    return unpack.for_this_run(PYZ, refused)


def check_trust(place: str, uid: int) -> None:
    """Raise UntrustedError if anyone but us and root can change `place` or its cache, or put another there.

    What does not exist yet is passed over: the same holds once we have made it.
    """
    ours = (place, os.path.dirname(place))
    directory = place
    while True:
        try:
            seen = os.stat(directory)
        except FileNotFoundError:
            pass
        else:
            if seen.st_uid != uid and (seen.st_uid != 0 or directory in ours):
                raise UntrustedError(f"{directory} belongs to user {seen.st_uid}, and we are user {uid}")
            # Below a sticky directory such as /tmp only its owner can replace an entry.
            if seen.st_mode & 0o022 and (not seen.st_mode & stat.S_ISVTX or directory in ours):
                raise UntrustedError(f"{directory} can be written by others (mode {stat.S_IMODE(seen.st_mode):o})")
        if directory == "/":
            return
        directory = os.path.dirname(directory)


def is_whole(place: str) -> bool:
    """Whether every file that was unpacked is there in full: disks fill up and cleaners delete old files."""
    try:
        with open(f"{place}/{STAMP}") as stamp:
            count, *listed = stamp.read().splitlines()
        sizes = (line.split(" ", 1) for line in listed)
        return int(count) == len(listed) and all(
            os.stat(f"{place}/{name}").st_size == int(size) for size, name in sizes
        )
    except (OSError, ValueError):
        return False
