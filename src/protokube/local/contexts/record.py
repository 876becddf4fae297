"""Where a cluster's contexts were merged, kept in its state folder: `down` takes them out there, and nowhere else.

Written before the merge, so that an `up` that is killed leaves nothing that `down` does not know.
"""

from __future__ import annotations

import json
from typing import Any

from protokube.errors import Refused
from protokube.host.files import read_or_none, write_atomic
from protokube.local.base import private
from protokube.local.base.paths import Paths
from protokube.local.contexts.person import Lookup, Person
from protokube.local.contexts.user_kubeconfig import Place

FILE = "contexts.json"


def read(paths: Paths, lookup: Lookup) -> list[Place]:
    """A user who has left the password database keeps the files; they are touched with the ids of that time."""
    return [_place(each, lookup) for each in _rows(paths)]


def add(paths: Paths, place: Place) -> None:
    person = place.person
    row = {"uid": person.uid, "gid": person.gid, "name": person.name, "files": list(place.paths)}
    rows = _rows(paths)
    if row not in rows:
        rows = [each for each in rows if (each["uid"], each["files"]) != (row["uid"], row["files"])]
        private.make_folder(paths.client)
        write_atomic(paths.client / FILE, f"{json.dumps([*rows, row], indent=2)}\n".encode(), 0o600)


def _rows(paths: Paths) -> list[dict[str, Any]]:
    file = paths.client / FILE
    data = read_or_none(file)
    try:
        rows = json.loads(data) if data is not None else []
        return [{"uid": int(each["uid"]), "gid": int(each["gid"]), "name": str(each["name"]),
                 "files": [str(path) for path in each["files"]]} for each in rows]  # fmt: skip
    except (ValueError, TypeError, KeyError) as error:
        raise Refused(f"{file} cannot be read", saw=str(error), hint="remove it") from error


def _place(row: dict[str, Any], lookup: Lookup) -> Place:
    gone = Person(uid=row["uid"], gid=row["gid"], groups=(), home="", name=row["name"])
    return Place(person=lookup(row["uid"]) or gone, paths=tuple(row["files"]))
