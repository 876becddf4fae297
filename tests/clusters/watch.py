"""Somebody who asks every member, again and again, as users of etcd do: who are you, what do you hold, will you write?

What must never be seen, whoever answers and whenever: a read that a quorum stands behind and that lacks a key which was
acknowledged before; an id of another cluster; a write that is taken although nobody can have a quorum.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from protokube.errors import ProtokubeError
from protokube.etcd.client import GatewayEtcd
from protokube.etcd.tls import TlsFiles

EVERY = 0.1
KEYS, CANARIES = "/before/", "/canary/"


def write_keys(etcd: GatewayEtcd, count: int = 20) -> dict[str, str]:
    """What has to be there from now on."""
    keys = {f"{KEYS}{number:03d}": f"value {number}" for number in range(count)}
    for key, value in keys.items():
        etcd.put(key, value)
    return keys


class Onlooker:
    """One thread for each member; what they saw is read when they have stopped."""

    def __init__(self, endpoints: Mapping[str, str], tls: TlsFiles, keys: Mapping[str, str], cluster_id: int) -> None:
        self.keys, self.cluster_id = dict(keys), cluster_id
        self.asked: Counter[str] = Counter()
        """How often each member was asked."""
        self.answered: Counter[str] = Counter()
        """How often each said who it is."""
        self.strange_ids: list[str] = []
        self.missing: list[str] = []
        """Reads with a quorum that lacked a key."""
        self.accepted: list[str] = []
        """Writes that were acknowledged."""
        self._stop = threading.Event()
        self._clients = [GatewayEtcd({name: url}, tls, timeout=1.0) for name, url in endpoints.items()]
        self._threads = [
            threading.Thread(target=self._watch, args=(name, client), daemon=True)
            for name, client in zip(endpoints, self._clients, strict=True)
        ]

    @property
    def wrong(self) -> list[str]:
        """Everything that must never be seen where two of three members have lost their data."""
        return [*self.strange_ids, *self.missing, *self.accepted]

    def _watch(self, name: str, client: GatewayEtcd) -> None:
        while not self._stop.wait(EVERY):
            self.asked[name] += 1
            try:
                self._ask(name, client)
            except ProtokubeError:
                continue

    def _ask(self, name: str, client: GatewayEtcd) -> None:
        said = client.status(name)
        self.answered[name] += 1
        when = time.strftime("%X")
        if said.cluster_id != self.cluster_id:
            self.strange_ids.append(f"{when} {name} is of cluster {said.cluster_id:x}, not {self.cluster_id:x}")
        if not said.leader:
            return
        found = {each.key: each.value for each in client.read(KEYS)}
        lacks = [key for key, value in self.keys.items() if found.get(key) != value]
        if lacks:
            self.missing.append(f"{when} {name}, behind a quorum, lacks {len(lacks)} keys: {lacks[0]}, ...")
        client.put(f"{CANARIES}{name}", when)
        self.accepted.append(f"{when} {name} took a write")

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for client in self._clients:
            client.close()
