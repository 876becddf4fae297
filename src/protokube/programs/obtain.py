"""Get Kubernetes: what is here already, else from a folder, from its releases, or built here.

Only one way is gone, and the user says which: a build takes a quarter of an hour, and an offline folder is named by
someone who does not want a download. A build is made from Go modules, or from Debian's source for the one version that
Debian has.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from protokube.errors import InvalidRequest, Refused
from protokube.programs import debian, gomodules, release, shelf
from protokube.programs.kubernetes import CACHE, PROGRAMS, Kubernetes, find, in_cache, in_folder, plain_version
from protokube.programs.kubernetes import version as told_version
from protokube.programs.telling import Silent, Teller


def obtain(
    version: str | None,
    cache: Path = CACHE,
    *,
    folder: Path | None = None,
    mirrors: Sequence[str] = (),
    build: bool = False,
    unverified: bool = False,
    teller: Teller | None = None,
) -> Kubernetes:
    """This version of Kubernetes in the cache; without one, what the folder or Debian has, or what is there."""
    if unverified and not build:
        raise InvalidRequest("--unverified is about modules that are built here", hint="add --build, or leave it out")
    if sum(map(bool, (folder, mirrors, build))) > 1:
        raise InvalidRequest("only one of --from, --mirror and --build can be gone by")
    if (version or not (folder or build)) and (found := find(version, cache)):
        return found
    teller = teller or Silent()
    asked = None if version is None else plain_version(version)
    if folder is not None:
        return copy_folder(folder, cache, teller, asked)
    if build and asked in (None, debian.VERSION):
        return debian.build_from_debian(cache, teller, asked)
    if build and asked is not None:
        return gomodules.build_from_modules(asked, cache, teller, unverified=unverified)
    if asked is None:
        raise InvalidRequest(f"there is no Kubernetes in {cache} yet", hint="name a version, such as 1.34.1")
    with shelf.only_one(cache, teller) as kept:
        if found := find(asked, cache):
            return found
        draft = shelf.draft(kept, asked)
        try:
            release.download_release(asked, draft, mirrors, teller)
        finally:
            if not any(draft.iterdir()):  # a version that nobody has, or nobody to ask
                draft.rmdir()
        return shelf.finish(draft, kept, asked)


def copy_folder(folder: Path, cache: Path, teller: Teller, asked: str | None) -> Kubernetes:
    """Keep the programs of a folder; checksums are looked at where they lie beside them."""
    there = in_folder(folder)
    if missing := [name for name in PROGRAMS if name not in there]:
        raise InvalidRequest(
            f"there is no {', no '.join(missing)} in {folder}",
            want=f"{', '.join(PROGRAMS)}, as programs that may be executed",
            hint="the folder kubernetes/server/bin of an unpacked kubernetes-server-linux archive has them all",
        )
    for path in there.values():
        _check(path)
    found = told_version(there[PROGRAMS[0]])
    if asked not in (None, found):
        raise InvalidRequest(f"{folder} holds Kubernetes {found}", want=f"{asked}, which was asked for")
    with shelf.only_one(cache, teller) as kept:
        if done := in_cache(found, cache):
            return done
        draft = shelf.draft(kept, found)
        for name, path in there.items():
            with teller.step(f"{name} {found}"):
                shutil.copyfile(path, draft / name)
        return shelf.finish(draft, kept, found)


def _check(path: Path) -> None:
    beside = path.with_name(f"{path.name}.sha256")
    if not beside.exists():
        return
    promised = re.match(r"[0-9a-f]*", beside.read_text("ascii", "replace").strip().lower())
    with path.open("rb") as file:
        came = hashlib.file_digest(file, "sha256").hexdigest()
    if promised is None or promised[0] != came:
        raise Refused(
            f"{path} is not what its checksum promises",
            saw=f"sha256 {came}",
            want=f"{promised[0] if promised else 'a checksum'}, from {beside.name}",
            hint="get the folder anew",
        )
