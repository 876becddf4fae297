"""What must exist before a machine boots: authorities, the DNS key, founding volumes, generation records, groups.

Only an operator's command calls this, never an agent. Each step is idempotent: it creates what is missing, and an
existing record is never replaced.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

from protokube.config.dnscontroller import KEY_SECRET
from protokube.errors import Refused
from protokube.launch.machine import EtcdCluster, MasterConfig
from protokube.launch.revisions import read_rollout
from protokube.members.founding import first_generation
from protokube.members.generation import Generation, decode, encode
from protokube.pki.authority import ensure_authority
from protokube.pki.keystore import Keystore
from protokube.providers.dns.keys import TsigKey, new_key
from protokube.providers.groups import Group, GroupProvider
from protokube.providers.volumes import Volume, VolumePool
from protokube.store import AlreadyThere, NotThere, Store, layout
from protokube.store.guard import prove_guard


def prove_store(store: Store, wanted: MasterConfig) -> None:
    """Refused if two masters could both believe that they founded the cluster, or took a turn, in this store.

    Once, when the cluster is created: a second `up` that changes nothing must write nothing.
    """
    if any(len(etcd.members) > 1 for etcd in wanted.etcd) and read_rollout(store, wanted.cluster) is None:
        prove_guard(store)


def tsig_key(store: Store, cluster: str) -> TsigKey:
    """The TSIG key by which agents update DNS; created once."""
    path = layout.secret(cluster, KEY_SECRET)
    made = new_key(f"protokube.{cluster}")
    with contextlib.suppress(AlreadyThere):
        store.create(path, json.dumps({"name": made.name, "secret": made.secret}).encode())
    document = json.loads(store.read(path).data)
    return TsigKey(name=document["name"], secret=document["secret"])


def ensure_authorities(store: Store, wanted: MasterConfig) -> None:
    """Create every missing CA and key pair. Only done here: an agent never creates one."""
    keystore = Keystore(store=store, layout=layout, cluster=wanted.cluster)
    for name in sorted({*wanted.authorities, *wanted.key_pairs}):
        ensure_authority(keystore, name, time.time())


def create_founders(pool: VolumePool, wanted: MasterConfig, zone: str) -> Sequence[Volume]:
    """Create one blank disk for each member, in `zone` if it names none. Idempotent: existing ones are returned."""
    likes = [
        Volume(
            id="", zone=member.zone or zone, etcd_cluster=etcd.key, member=member.short,
            members=tuple(each.short for each in etcd.members), size=member.size, made_empty=True,
        )
        for etcd in wanted.etcd
        for member in etcd.members
    ]  # fmt: skip
    return pool.create_founders(likes)


def record_generation(store: Store, cluster: str, etcd: EtcdCluster, volumes: Sequence[Volume]) -> Generation:
    """Create the generation record, before any machine boots; an existing record is never overwritten."""
    path = layout.etcd_generation(cluster, etcd.key)
    founders = {each.member: each.id for each in volumes if each.etcd_cluster == etcd.key}
    made = first_generation(etcd.key, etcd.token, founders, uuid.uuid4().hex[:12])
    with contextlib.suppress(AlreadyThere):
        store.create(path, encode(made))
    found = decode(store.read(path).data)
    if found is None:
        raise Refused(
            f"the generation record of {etcd.key} cannot be read", hint="restore it from a backup of the store"
        )
    if found.open and found.founders != founders:
        raise Refused(
            f"the generation record of {etcd.key} names other volumes than the cloud has",
            saw=f"{found.founders} recorded, {founders} in the cloud",
            hint="`protokube down`, if nothing of it is needed, and `up` again",
        )
    return found


def is_closed(store: Store, wanted: MasterConfig) -> bool:
    """Whether the generation record of every etcd cluster is closed, so that no member may be founded any more."""
    for etcd in wanted.etcd:
        try:
            record = decode(store.read(layout.etcd_generation(wanted.cluster, etcd.key)).data)
        except NotThere:
            return False
        if record is None or record.open:
            return False
    return True


def ensure_groups(groups: GroupProvider, wanted: MasterConfig, template: dict[str, Any]) -> None:
    """Create one group of size 1 for each master: a killed master is replaced in its own group."""
    for name in sorted({member.group or "masters" for etcd in wanted.etcd for member in etcd.members}):
        groups.ensure(Group(name=name, size=1, template=template))
