"""The add-ons of a cluster in its store: sets by what they are, and beside them which set is the current one.

Whoever is told a digest reads exactly those. A machine is told one at its launch, and nobody tells it of a later one:
so every master asks for the current set, and the digest it was launched with serves only where none was ever named.
"""

from __future__ import annotations

import contextlib

from protokube.addons import current as currents
from protokube.addons.current import Current
from protokube.addons.value import Addon, decode, digest, encode
from protokube.errors import Refused, TryLater
from protokube.store import AlreadyThere, NotThere, Store, Stored, layout

FOLDER, CURRENT = "wanted", "current"


def place(cluster: str, of: str) -> str:
    return layout.addon(cluster, FOLDER, f"{of}.json")


def put_addons(store: Store, cluster: str, addons: tuple[Addon, ...]) -> str:
    """Have them in the store, and every master want them; the digest they are known by."""
    of = digest(addons)
    with contextlib.suppress(AlreadyThere):
        store.create(place(cluster, of), encode(addons))
    _name_current(store, cluster, of)  # last: what is named must be there
    return of


def read_current(store: Store, cluster: str) -> Current | None:
    """What was asked for last; None if nothing ever was, or by a version of us that did not count."""
    stored = _stored(store, place(cluster, CURRENT))
    return currents.decode(stored.data) if stored else None


def _name_current(store: Store, cluster: str, of: str) -> None:
    path = place(cluster, CURRENT)
    stored = _stored(store, path)
    before = currents.decode(stored.data) if stored else None
    wanted = currents.following(before, of)
    if wanted == before:
        return
    try:
        if stored is None:
            store.create(path, currents.encode(wanted))
        else:
            store.replace(path, currents.encode(wanted), stored.version)
    except (AlreadyThere, TryLater) as why:  # somebody else was faster, or the answer was lost
        now = read_current(store, cluster)
        if now is None or now.digest != of:
            raise TryLater(
                "somebody else says at the same time which add-ons this cluster gets", saw=str(now), want=str(wanted),
                hint="run the command again: who comes last is right",
            ) from why  # fmt: skip


def _stored(store: Store, path: str) -> Stored | None:
    try:
        return store.read(path)
    except NotThere:
        return None


def read_addons(store: Store, cluster: str, of: str) -> tuple[Addon, ...]:
    addons = decode(store.read(place(cluster, of)).data)
    if digest(addons) != of:
        raise Refused(
            "the add-ons in the store are not those that were asked for", saw=digest(addons)[:12], want=of[:12],
            hint="`protokube up` writes them anew once the file is gone",
        )  # fmt: skip
    return addons


def read_manifest(url: str) -> str:
    """The text behind the place of a manifest: any kind of store can hold one."""
    from protokube.store.open import open_store

    folder, _, name = url.rpartition("/")
    store = open_store(folder or ".")
    try:
        return store.read(name).data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{url} is no text", saw=str(error), want="YAML in UTF-8") from error
    finally:
        store.close()
