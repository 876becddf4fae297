"""Records that agents published in a store: of three masters of which all is well, but for what a test changes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Any

from builders.config import completed
from builders.view import CLUSTER, NOW, SHORTS, a_generation, listed
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import Revision, create_revision, digest_of, put_in_force
from protokube.members.generation import encode
from protokube.members.survey.answers import Answer, Answers, to_tree
from protokube.store import Store, layout
from protokube.store.memory import MemoryStore
from protokube.view.cluster import ClusterView
from protokube.view.published import Published, read_published
from protokube.view.stored import StoredSource

Tree = dict[str, Any]
STORES = count(1)
LIVE = {f"i-{number}": f"10.77.0.{11 + number}" for number in range(3)}
WANTED: MasterConfig = from_config(completed(name=CLUSTER, cloud="local", masters=3, etcdClusters=[{"name": "main"}]))


def a_volume(short: str, **changes: Any) -> Tree:
    number = SHORTS.index(short)
    volume = {
        "id": f"vol-{short * 4}", "member": f"main/{short}", "attachedTo": f"i-{number}", "size": 20 * 2**30,
        "lastHolder": f"i-{number}", "epoch": 1, "mark": "formed", "phase": "taken",
    }  # fmt: skip
    return {**volume, **changes}


def an_answer(short: str, **changes: Any) -> Answer:
    answer = Answer(
        id=0xA0 + SHORTS.index(short), cluster_id=0xC1, leader_id=0xA0, raft_term=2, revision=10, learner=False,
        version="3.5.1", db_size=20480, db_in_use=16384,
    )  # fmt: skip
    return replace(answer, **changes)


def a_survey(shorts: Iterable[str] = SHORTS, **changes: Any) -> Tree:
    """What these members answered."""
    members = {f"etcd-{short}": an_answer(short) for short in shorts}
    return {"main": to_tree(replace(Answers(members=members, listed=listed()), **changes))}


MODIFIED = "when the store took it"
"""In a record of these builders, and never in the store."""


def a_record(number: int = 0, *, age: float = 2.0, wrong_by: float = 0.0, **changes: Any) -> Tree:
    """What the agent of one master, whose clock is `wrong_by`, published `age` seconds ago."""
    short, address = SHORTS[number], f"10.77.0.{11 + number}"
    mounted = {
        "member": f"main/{short}", "volume": f"vol-{short * 4}", "epoch": 1, "holder": f"i-{number}", "name": "",
        "generation": "g1", "data": "present", "doing": "going on", "why": "", "linked": True, "dnsName": "",
    }  # fmt: skip
    api = {f"api.internal.{CLUSTER}": sorted(LIVE.values())} if number == 0 else {}
    record = {
        "machine": {"id": f"i-{number}", "name": f"master-{number}", "address": address, "external": "",
                    "zone": "z", "group": "masters"},
        "cluster": CLUSTER, "revision": 1, "round": 7, "at": NOW - age + wrong_by, "took": 0.1, "nextWithin": 10.0,
        "report": {"did": [], "waiting": [], "needsAPerson": [], "broken": [], "warnings": []}, "jobs": [],
        "volumes": [a_volume(each, phase="serving" if each == short else "taken") for each in SHORTS],
        "members": [mounted], "live": dict(LIVE), "elected": number == 0, "serving": None, "zone": True,
        "names": {f"etcd-{short}.internal.{CLUSTER}": [address]} | api, "watched": {}, "digest": "",
        "publishedWithin": 360.0, "withoutQuorumSince": None, "etcd": a_survey(),
        "format": 1, "publishEvery": 60.0, "written": NOW - age + wrong_by, "waited": 0.0, "volumesAge": 0.0,
        "leasesRead": {"cluster": "c1", "revision": int(NOW - age)}, MODIFIED: NOW - age,
    }  # fmt: skip
    return {**record, **changes}


def a_report(number: int = 0, *, age: float = 2.0, **changes: Any) -> Published:
    found = read_published(json.dumps(a_record(number, age=age, **changes)).encode(), NOW, None)
    assert found is not None
    return found


def noted(record: Tree, kind: str, text: str, **more: Any) -> Tree:
    """The same record with one note in its report."""
    note = {"step": "volumes", "about": "", "text": text, **more}
    return {**record, "report": {**record["report"], kind: [note]}}


def a_store(*records: Tree, generation: bool = True, revision: bool = True) -> Store:
    """A store with one cluster, and what its agents published."""
    times = [NOW - 900]
    store = MemoryStore(f"published-{next(STORES)}", clock=lambda: times[0])
    store.put(layout.config(CLUSTER), b"kind: Cluster\n")
    if generation:
        store.put(layout.etcd_generation(CLUSTER, "main"), encode(a_generation()))
    if revision:
        master = replace(WANTED, revision=1)
        made = Revision(number=1, digest=digest_of(master), author="operator", at=NOW - 900, master=master)
        put_in_force(store, CLUSTER, create_revision(store, CLUSTER, lambda _number: made), running=False)
    for each in records:
        times[0] = each[MODIFIED]
        inside = {name: value for name, value in each.items() if name != MODIFIED}
        store.put(layout.agent(CLUSTER, each["machine"]["id"]), json.dumps(inside).encode())
    return store


def seen(*records: Tree, now: float = NOW, **options: bool) -> ClusterView:
    return StoredSource(a_store(*records, **options), CLUSTER, lambda: now).look()
