"""Numbered revisions in the state store: each configuration that was put in force, never changed afterwards.

Two operators may put one in force at the same time, so numbers are given by conditional creates, and the rollout record
is replaced only over the version that was read. A revision that was created and never rolled out is harmless: its
number is not used again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.launch.machine import FIRST, MasterConfig, from_tree, to_tree
from protokube.launch.rollout import Rollout, State, decode, encode
from protokube.store import AlreadyThere, Changed, NotThere, Store, Unsure, layout

ATTEMPTS = 20
"""Conditional writes that may be lost to others before an operator's command gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One configuration that was put in force."""

    number: int
    digest: str
    """Of the configuration of a master: equal digests need no rollout."""
    author: str
    at: float
    """Seconds since 1970."""
    master: MasterConfig
    spec: str = ""
    """The user's spec, as it was written."""
    source: str = ""
    """The file that the spec was read from."""
    kubernetes: str = ""
    etcd: str = ""
    note: str = ""
    """Why it was put in force, such as `as revision 2`."""
    snapshots: Mapping[str, str] = field(default_factory=dict)
    """By etcd cluster: where in the store its data lie, as they were before this revision."""


def digest_of(master: MasterConfig) -> str:
    """Independent of the revision's number, and of the add-ons, which have a record of their own.

    Nor does it depend on the version of the wire format: revisions written in an earlier one are not damaged.
    """
    tree = to_tree(replace(master, revision=0, addons="")) | {"version": FIRST}
    return hashlib.sha256(json.dumps(tree, sort_keys=True, default=str).encode()).hexdigest()[:16]


def with_versions(revision: Revision) -> MasterConfig:
    """What masters are given, with the versions that only the revision has: an older protokube wrote them there."""
    etcd = tuple(replace(each, version=each.version or revision.etcd) for each in revision.master.etcd)
    kubernetes = revision.master.kubernetes or (revision.kubernetes if revision.master.components else "")
    return replace(revision.master, etcd=etcd, kubernetes=kubernetes)


def encode_revision(revision: Revision) -> bytes:
    fields = {name: getattr(revision, name) for name in Revision.__slots__ if name != "master"}
    # keys keep their order: another order would rewrite manifests whose content is the same
    return (json.dumps(fields | {"master": to_tree(revision.master)}) + "\n").encode()


def decode_revision(data: bytes) -> Revision:
    """InvalidRequest if it cannot be read, or was made by another version of protokube."""
    try:
        tree: dict[str, Any] = json.loads(data)
        master = from_tree(tree["master"])
        if type(tree["number"]) is not int or tree["number"] < 0:
            raise ValueError(f"{tree['number']} is no number of a revision")
        found = Revision(**tree | {"master": replace(master, revision=tree["number"])})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRequest(f"this is no revision: {error}", hint="restore it from a backup of the store") from error
    if digest_of(found.master) != found.digest:
        raise InvalidRequest(
            f"revision {found.number} is damaged: its digest is {found.digest}, its content has another one",
            hint="restore it from a backup of the store",
        )
    return found


def read_revision(store: Store, cluster: str, number: int) -> Revision:
    """InvalidRequest if it cannot be read, or is another one: an agent would take that one again and again."""
    path = layout.revision(cluster, number)
    found = decode_revision(store.read(path).data)
    if (found.master.cluster, found.number) != (cluster, number):
        raise InvalidRequest(
            f"{path} is revision {found.number} of {found.master.cluster}",
            saw=f"{path} in {store.url}",
            hint="restore it from a backup of the store",
        )
    return found


def numbers(store: Store, cluster: str) -> list[int]:
    """The numbers of all revisions, ascending."""
    names = (path.rpartition("/")[2] for path in store.list_paths(layout.revisions(cluster)))
    return sorted(int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdecimal())


def read_rollout(store: Store, cluster: str) -> Rollout | None:
    """None if there is no record yet. Refused if there is one that cannot be read."""
    try:
        data = store.read(layout.rollout(cluster)).data
    except NotThere:
        return None
    return _decoded(store, cluster, data)


def _decoded(store: Store, cluster: str, data: bytes) -> Rollout:
    found = decode(data)
    if found is None:
        raise Refused(
            f"the rollout record of {cluster} cannot be read",
            saw=f"{layout.rollout(cluster)} in {store.url}",
            hint="restore it from a backup of the state store; masters keep their configuration meanwhile",
        )
    return found


def change_rollout(store: Store, cluster: str, how: Callable[[Rollout], Rollout]) -> Rollout:
    """Write a changed record over the one just read. Changed (a TryLater) if another writer was faster."""
    stored = store.read(layout.rollout(cluster))
    known = _decoded(store, cluster, stored.data)
    wanted = how(known)
    if wanted != known:
        store.replace(stored.path, encode(wanted), stored.version)
    return wanted


def create_revision(store: Store, cluster: str, make: Callable[[int], Revision]) -> Revision:
    """Create a revision with the next free number."""
    for _ in range(ATTEMPTS):
        made = make(max(numbers(store, cluster), default=0) + 1)
        try:
            store.create(layout.revision(cluster, made.number), encode_revision(made))
        except (AlreadyThere, Unsure):
            continue  # another operator took the number, or we did without an answer: it stays unused
        return made
    raise TryLater(f"the revisions of {cluster} are being changed by others", hint="run it again")


def put_in_force(
    store: Store, cluster: str, revision: Revision, *, running: bool, at: float | None = None, by: str = "",
    planned_on: Rollout | None = None,
) -> Rollout:  # fmt: skip
    """Roll this revision out; without masters that run (`running`), it is simply the one that new machines take.

    `at` and `by`: when and by whom, if not at its creation: one that stopped may be put in force again.
    `planned_on`: the record for which it was planned; Refused if another one holds by now.
    """
    at, by = revision.at if at is None else at, by or revision.author
    for _ in range(ATTEMPTS):
        try:
            if read_rollout(store, cluster) is None:
                first = Rollout(wanted=revision.number, state=State.DONE)
                text = f"revision {revision.number} put in force by {by}"
                store.create(layout.rollout(cluster), encode(first.noted(at, "", text)))
            return change_rollout(
                store, cluster, lambda known: _put(known, revision.number, at, by, planned_on, running=running)
            )
        except (AlreadyThere, Changed, Unsure):  # somebody was faster, or an answer was lost: read again
            continue
    raise TryLater(f"the rollout record of {cluster} is being changed by others", hint="run it again")


def _put(
    known: Rollout, number: int, at: float, by: str, planned_on: Rollout | None, *, running: bool
) -> Rollout:  # fmt: skip
    if is_put_in_force(known, number):
        return known  # by a command whose answer was lost
    need_unchanged(known, planned_on)
    begun = known.begun(number, at, by)
    return begun if running else replace(begun, state=State.DONE)


def is_put_in_force(known: Rollout, number: int) -> bool:
    return known.wanted == number and known.state is not State.STOPPED


def need_unchanged(known: Rollout, planned_on: Rollout | None) -> None:
    """Refused if the record is not the one for which something was planned; turns and events may differ."""
    if planned_on and (known.wanted, known.state, known.before) != (
        planned_on.wanted, planned_on.state, planned_on.before
    ):  # fmt: skip
        raise Refused(
            "the cluster changed while this command ran: its plan does not hold any more",
            saw=f"planned on revision {planned_on.wanted} ({planned_on.state.value}), "
            f"now {known.wanted} ({known.state.value})",
            hint="run it again, which plans anew; `protokube rollout status` shows what goes on",
        )


def in_force(store: Store, cluster: str) -> tuple[Rollout, Revision] | None:
    """The record and the revision that it names; None before the first one."""
    record = read_rollout(store, cluster)
    return (record, read_revision(store, cluster, record.wanted)) if record else None


def by_number(store: Store, cluster: str) -> Mapping[int, Revision]:
    """All revisions that can be read, for `rollout history`."""
    found = {}
    for number in numbers(store, cluster):
        try:
            found[number] = read_revision(store, cluster, number)
        except (InvalidRequest, NotThere):
            continue
    return found
