"""What apt-get and dpkg mean by their output, with LC_ALL=C. Pure.

Their exit status is 100 for everything, so the text decides. What is not recognised is shown as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

LINES = 6
"""The most lines of an error that are shown."""


class Trouble(StrEnum):
    """Why it failed, by what helps."""

    LOCKED = "another program works on the packages"
    UNKNOWN = "a package or a version is not known"
    DOWNLOAD = "a download failed"
    INTERRUPTED = "dpkg was interrupted before"
    REMOVES = "other packages would be removed"
    DOWNGRADES = "packages would be downgraded"
    HELD = "packages on hold would be changed"
    CONFLICT = "dependencies cannot be satisfied"
    SOURCES = "the list of sources cannot be read"
    UNSIGNED = "packages are not signed"
    READ_ONLY = "a file system is read-only"
    FULL = "a disk is full"
    OTHER = "it failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """One failure of apt-get or dpkg."""

    trouble: Trouble
    names: tuple[str, ...] = ()
    """The packages that it is about."""
    saw: str = ""


PATTERNS: tuple[tuple[Trouble, str], ...] = (
    (Trouble.LOCKED, r"Could not get lock|Unable to (?:acquire the dpkg|lock )|(?:frontend|database) lock was locked"),
    (Trouble.READ_ONLY, r"Read-only file system"),
    (Trouble.FULL, r"No space left on device|enough free space in"),
    (Trouble.SOURCES, r"list of sources could not be read|Malformed (?:entry|line|stanza)|is not known on "),
    (Trouble.INTERRUPTED, r"dpkg was interrupted"),
    (Trouble.REMOVES, r"need to be removed but remove is disabled|Remove.* is disabled"),
    (Trouble.DOWNGRADES, r"Packages were downgraded"),
    (Trouble.HELD, r"Held packages were changed"),
    (Trouble.UNSIGNED, r"unauthenticated packages|cannot be authenticated|is not signed"),
    (Trouble.UNKNOWN, r"Unable to locate package|has no installation candidate|Version '.*' was not found"),
    (Trouble.DOWNLOAD, r"Failed to fetch|Unable to fetch|Hash Sum mismatch|unexpected size"),
    (Trouble.CONFLICT, r"unmet dependencies|held broken packages|pkgProblemResolver"),
)  # fmt: skip
"""In this order: one that is a consequence of another comes after it."""
UNKNOWN = re.compile(
    r"Unable to locate package (\S+)|Package '(\S+)' has no installation|Version '\S+' for '(\S+)' was"
)
LISTED = r"The following packages will be {}:\n((?:  .*\n?)+)"
WORTH_SHOWING = re.compile(r"^(?:E: |dpkg: error|Err:| .*Depends: )")
NO_REASON = re.compile(r"^E: (?:Sub-process /usr/bin/dpkg returned|Some files failed to download)")


def read(output: str) -> Answer:
    """Why it failed."""
    trouble = next((kind for kind, pattern in PATTERNS if re.search(pattern, output)), Trouble.OTHER)
    return Answer(trouble, names(trouble, output), shown(output))


def names(trouble: Trouble, output: str) -> tuple[str, ...]:
    if trouble is Trouble.UNKNOWN:
        return tuple(dict.fromkeys(next(filter(None, each)) for each in UNKNOWN.findall(output)))
    words = {Trouble.REMOVES: "REMOVED", Trouble.DOWNGRADES: "DOWNGRADED"}
    if trouble in words and (listed := re.search(LISTED.format(words[trouble]), output)):
        return tuple(listed[1].split())
    if trouble is Trouble.HELD and (
        listed := re.search(r"The following held packages will be changed:\n((?:  .*\n?)+)", output)
    ):
        return tuple(listed[1].split())
    return ()


def shown(output: str) -> str:
    """The lines that say what went wrong, in one line."""
    # dpkg gives its reason in the line after the package's name.
    lines = [line for line in re.sub(r"(?m)^(dpkg: error .*:)\n", r"\1", output).splitlines() if line.strip()]
    found = [line for line in lines if WORTH_SHOWING.match(line) and not NO_REASON.match(line)]
    chosen = dict.fromkeys(" ".join(line.split()) for line in (found or lines[-LINES:]))
    return "; ".join(list(chosen)[:LINES])


def not_fetched(output: str) -> str:
    """What apt-get update could not fetch, in one line. It ends with 0 even then."""
    lines = [line for line in output.splitlines() if re.match(r"[WE]: (?:Failed to fetch|The repository)", line)]
    return "; ".join(dict.fromkeys(" ".join(line[3:].split()) for line in lines[:LINES]))
