"""Whose kubeconfig is meant, and which files it has.

`up` runs as root, mostly by sudo. The next command, `kubectl`, is typed without it: so the files are those of the user
who typed sudo, and are touched with that user's rights only. In a root shell (`sudo -i`, `sudo su`) the next command is
root's own, and so is the kubeconfig.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import Refused

VARIABLE = "KUBECONFIG"
HOME = ".kube/config"
SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "mksh", "nu", "sh", "su", "tcsh", "zsh"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user of this machine, and the ids with which its files are touched."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    name: str


Lookup = Callable[[int], Person | None]
"""The password database, by uid."""


def system_person(uid: int) -> Person | None:
    import pwd

    try:
        found = pwd.getpwuid(uid)
    except KeyError:
        return None
    groups = tuple(os.getgrouplist(found.pw_name, found.pw_gid))
    return Person(uid=uid, gid=found.pw_gid, groups=groups, home=found.pw_dir, name=found.pw_name)


def who_typed(environ: Mapping[str, str], euid: int, lookup: Lookup) -> Person:
    """Refused if sudo names a user that the password database does not have."""
    by_sudo = euid == 0 and environ.get("SUDO_UID", "0") != "0" and not _is_shell(environ.get("SUDO_COMMAND", ""))
    if not by_sudo:
        found = lookup(euid)
        home = environ.get("HOME") or (found.home if found else "")  # kubectl takes it from there, too
        gid, groups = (found.gid, found.groups) if found else (os.getegid(), tuple(os.getgroups()))
        return Person(uid=euid, gid=gid, groups=groups, home=home, name=found.name if found else str(euid))
    number = environ["SUDO_UID"]
    person = lookup(int(number)) if number.isdecimal() and len(number) < 11 else None
    if person is None or not person.home:
        raise Refused("the kubeconfig of the user who typed sudo is not known", saw=f"no home for user {number}")
    return person


def _is_shell(command: str) -> bool:
    """Whether sudo started a shell for somebody to type in; with arguments it is one command."""
    words = [word for word in command.split() if word not in ("-", "-l", "--login", "-i", "root")]
    return len(words) == 1 and words[0].rpartition("/")[2] in SHELLS


def files_of(person: Person, environ: Mapping[str, str], folder: str) -> tuple[str, ...]:
    """The absolute paths of the files, in kubectl's order: those in KUBECONFIG, or the one in the home folder.

    As in kubectl, empty entries and repeated ones are left out, and `~` has no meaning.
    """
    listed = environ.get(VARIABLE, "")
    named = dict.fromkeys(
        f"{folder}/{each}" if not each.startswith("/") else each for each in listed.split(":") if each
    )
    if listed and not named:
        raise Refused(f"{VARIABLE} names no file", saw=listed, hint=f"unset {VARIABLE}")
    if named:
        return tuple(named)
    if not person.home.startswith("/"):
        raise Refused(f"user {person.name} has no home folder", saw=person.home, hint=f"set {VARIABLE}")
    return (str(Path(person.home) / HOME),)
