"""Builders for revisions: configurations of a small cluster, and what only differs in what a test is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from builders.config import completed
from clusters.scenario.host import wanted_of
from protokube.launch.derive import from_config, master_kubelets
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import Revision, digest_of, encode_revision
from protokube.store import Store, Unsure, Version, layout
from protokube.store.memory import MemoryStore

CLUSTER = "laptop"


@cache
def a_master() -> MasterConfig:
    """A master with Kubernetes."""
    config = completed(cloud="local", masters=3, name=CLUSTER)
    return replace(from_config(config), kubelets=master_kubelets(config))


def with_settings(wanted: MasterConfig | None = None, /, **settings: Any) -> MasterConfig:
    """Masters that run etcd alone, with other settings: what has to restart is `etcd main`."""
    wanted = wanted or wanted_of()
    main = wanted.etcd[0]
    members = tuple(replace(each, settings={**each.settings, **settings}) for each in main.members)
    return replace(wanted, etcd=(replace(main, members=members),))


def a_revision(number: int = 1, master: MasterConfig | None = None, **fields: Any) -> Revision:
    master = replace(master or a_master(), revision=number)
    given = {"digest": digest_of(master), "author": "anna@laptop", "at": 100.0 * number, "spec": "kind: Cluster\n"}
    return Revision(number=number, master=master, **{**given, **fields})


def keep(store: Store, *made: Revision) -> None:
    """Write them to the store."""
    for each in made:
        store.create(layout.revision(each.master.cluster, each.number), encode_revision(each))


class LosingStore(MemoryStore):
    """A store some of whose writes get no answer: `lost` has for each whether it is lost `before` or `after` it is
    done; "" for one that is answered."""

    def __init__(self, name: str, *lost: str) -> None:
        super().__init__(name)
        self.lost = list(lost)

    def create(self, path: str, data: bytes) -> Version:
        return self._lose(lambda: super(LosingStore, self).create(path, data))

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        return self._lose(lambda: super(LosingStore, self).replace(path, data, seen))

    def _lose(self, write: Callable[[], Version]) -> Version:
        match self.lost.pop(0) if self.lost else "":
            case "before":
                raise Unsure("no answer")
            case "after":
                write()
                raise Unsure("no answer")
            case _:
                return write()
