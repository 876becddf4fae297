"""The add-ons of a cluster in its store: sets by digest, and beside them which set is the current one.

A digest names exactly one set. A machine gets a digest at its launch, and no later one: so every master reads which set
is current, and uses the digest of its launch only where no set was ever made current.
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
    """Store the add-ons and make them the current set; returns their digest."""
    of = keep_addons(store, cluster, addons)
    name_current(store, cluster, of)  # last: the current set must exist
    return of


def keep_addons(store: Store, cluster: str, addons: tuple[Addon, ...]) -> str:
    """Store a set that is not the current one yet; returns its digest."""
    of = digest(addons)
    with contextlib.suppress(AlreadyThere):
        store.create(place(cluster, of), encode(addons))
    return of


def read_current(store: Store, cluster: str) -> Current | None:
    """The current set; None if none was ever made current, as in stores of older versions."""
    stored = _stored(store, place(cluster, CURRENT))
    return currents.decode(stored.data) if stored else None


def name_current(store: Store, cluster: str, of: str) -> None:
    """Make a set that is kept the current one: agents apply it from now on."""
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
    except (AlreadyThere, TryLater) as why:  # another writer was faster, or the reply was lost
        now = read_current(store, cluster)
        if now is None or now.digest != of:
            raise TryLater(
                "another command changes the add-ons of this cluster at the same time", saw=str(now), want=str(wanted),
                hint="run the command again: the last one wins",
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
            "the add-ons in the store do not match their digest", saw=digest(addons)[:12], want=of[:12],
            hint="`protokube up` writes them anew once the file is gone",
        )  # fmt: skip
    return addons


def read_manifest(url: str) -> str:
    """The text of a manifest at a URL of any kind of store."""
    from protokube.store.open import open_store

    folder, _, name = url.rpartition("/")
    store = open_store(folder or ".")
    try:
        return store.read(name).data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{url} is no text", saw=str(error), want="YAML in UTF-8") from error
    finally:
        store.close()
