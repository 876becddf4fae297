"""The add-ons of a cluster in its store, by what they are: whoever is told a digest reads exactly those.

So a machine that was launched before a change, and one that was launched after it, each find their own.
"""

from __future__ import annotations

import contextlib

from protokube.addons.value import Addon, decode, digest, encode
from protokube.errors import Refused
from protokube.store import AlreadyThere, Store, layout

FOLDER = "wanted"


def place(cluster: str, of: str) -> str:
    return layout.addon(cluster, FOLDER, f"{of}.json")


def put_addons(store: Store, cluster: str, addons: tuple[Addon, ...]) -> str:
    """Have them in the store; the digest they are known by."""
    of = digest(addons)
    with contextlib.suppress(AlreadyThere):
        store.create(place(cluster, of), encode(addons))
    return of


def read_addons(store: Store, cluster: str, of: str) -> tuple[Addon, ...]:
    addons = decode(store.read(place(cluster, of)).data)
    if digest(addons) != of:
        raise Refused(
            "the add-ons in the store are not those that were asked for", saw=digest(addons)[:12], want=of[:12],
            hint="`protokube up` and `apply` write them anew once the file is gone",
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
