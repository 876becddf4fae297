"""Plan the merge of a cluster's context into a user's kubeconfig files.

Entries of others are never changed, also if they have the name that we would choose. Ours are recognised by their mark,
so a context that the user renamed is refreshed under its new name, and keeps its namespace.

Contexts of several clusters remember each other as the former one. That chain must not have a loop, or `down` would
return to what it removes: a context that becomes current again is first taken out of the chain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from protokube.errors import Refused
from protokube.local.contexts.values import (
    BODY,
    CLUSTERS,
    CONTEXTS,
    USERS,
    Current,
    Edit,
    Entry,
    Kubeconfig,
    Mark,
    Put,
    current_context,
    default_path,
    effective,
)

LOOPBACK = "https://127.0.0.1:"
"""How the address begins at which a local cluster's API is forwarded."""
OPERATOR = "operator"
"""The user of `up`; its context has the shortest name."""
WITHOUT = {
    CLUSTERS: frozenset({"certificate-authority", "insecure-skip-tls-verify"}),
    USERS: frozenset({"client-certificate", "client-key", "token", "tokenFile", "username", "password", "exec",
                      "auth-provider"}),
    CONTEXTS: frozenset(),
}  # fmt: skip
"""Fields that contradict ours: kubectl takes some of them first, or refuses the combination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What is merged: a cluster's API and the credentials of one user."""

    cluster: str
    mark: Mark
    server: str
    ca: str
    certificate: str
    key: str = field(repr=False)
    """The last three in base64, as a kubeconfig has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    edits: tuple[Edit, ...]
    """In the order in which files are to be written: a context exists before it is current."""
    context: str
    current: bool
    """Whether it is the current context afterwards."""
    path: str
    """The file that has it."""


def plan_merge(chain: Sequence[Kubeconfig], access: Access, *, switch: bool) -> MergePlan:
    """Refused if every name that we would choose belongs to somebody else."""
    found = {section: _ours(chain, access, section) for section in BODY}
    base = _free_name(chain, access, [section for section in BODY if found[section] is None])
    names = {section: ours[1].name if ours else base for section, ours in found.items()}
    home = next((ours[0] for ours in found.values() if ours), default_path(chain))
    paths = {section: ours[0] if ours else home for section, ours in found.items()}
    context, before = names[CONTEXTS], current_context(chain)
    mine = found[CONTEXTS]
    former = (mine[1].mark.former if mine and mine[1].mark else "") if before == context else before
    fields = {
        CLUSTERS: {"server": access.server, "certificate-authority-data": access.ca},
        USERS: {"client-certificate-data": access.certificate, "client-key-data": access.key},
        CONTEXTS: {"cluster": names[CLUSTERS], "user": names[USERS]},
    }
    edits: list[Edit] = []
    for section, ours in found.items():
        put = Put(
            path=paths[section], section=section, name=names[section], fields=fields[section], without=WITHOUT[section],
            mark=replace(access.mark, former=former if section == CONTEXTS else ""),
        )  # fmt: skip
        if ours is None or _differs(ours[1], put):
            edits.append(put)
    if former != context and before != context:
        edits += list(_without_former(chain, context, mine[1].mark.former if mine and mine[1].mark else ""))
    if switch and before != context:
        edits.append(Current(path=default_path(chain), name=context))
    return MergePlan(edits=tuple(edits), context=context, current=switch or before == context, path=paths[CONTEXTS])


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshPlan:
    edits: tuple[Edit, ...]


def plan_refresh(chain: Sequence[Kubeconfig], access: Access) -> RefreshPlan:
    """Bring address and CA up to date in what is there of this cluster, for each user; what was deleted stays away.

    An address that is not of the loopback stays: `export --server` or the user chose it.
    """
    found = (
        Put(path=file.path, section=CLUSTERS, name=entry.name, mark=entry.mark, fields=_current(entry, access))
        for file in chain
        for entry in file.of(CLUSTERS)
        if entry.mark and entry.mark.owner == access.mark.owner
    )
    return RefreshPlan(edits=tuple(put for put in found if put.fields))


def _current(entry: Entry, access: Access) -> dict[str, str]:
    """The fields of a cluster that are out of date."""
    fields = {"server": access.server, "certificate-authority-data": access.ca}
    if not str(entry.body.get("server") or "").startswith(LOOPBACK):
        del fields["server"]
    return {name: value for name, value in fields.items() if entry.body.get(name) != value}


def names_for(access: Access) -> tuple[str, str]:
    """The name we prefer, and another if that belongs to somebody else."""
    user = "" if access.mark.user == OPERATOR else f"-{access.mark.user}"
    name, owner = f"protokube-{access.cluster}{user}", access.mark.owner
    return name, f"{name}-{hashlib.sha256(f'{owner.machine}:{owner.state}'.encode()).hexdigest()[:6]}"


def _ours(chain: Sequence[Kubeconfig], access: Access, section: str) -> tuple[str, Entry] | None:
    """Our entry for this cluster and user that kubectl sees; the one with our name, if the user copied it."""
    preferred = names_for(access)
    seen = [
        (path, entry)
        for path, entry in effective(chain, section).values()
        if entry.mark and (entry.mark.owner, entry.mark.user) == (access.mark.owner, access.mark.user)
    ]
    return min(seen, key=lambda each: each[1].name not in preferred, default=None)


def _free_name(chain: Sequence[Kubeconfig], access: Access, sections: Sequence[str]) -> str:
    names = names_for(access)
    taken = {name for section in sections for name in effective(chain, section)}
    for name in names:
        if name not in taken:
            return name
    raise Refused(
        f"your kubeconfig has entries of others named {names[0]} and {names[1]}",
        hint=f"rename or remove them: kubectl config delete-context {names[0]}", code="exists",
    )  # fmt: skip


def _differs(entry: Entry, put: Put) -> bool:
    body: Mapping[str, object] = entry.body
    same = all(body.get(name) == value for name, value in put.fields.items())
    return not same or bool(put.without & body.keys()) or entry.mark != put.mark


def _without_former(chain: Sequence[Kubeconfig], context: str, instead: str) -> Iterator[Put]:
    """Contexts of other clusters that would return to `context` return to what was before it."""
    for path, entry in effective(chain, CONTEXTS).values():
        if entry.mark and entry.mark.former == context and entry.name != context:
            former = "" if instead == entry.name else instead
            yield Put(path=path, section=CONTEXTS, name=entry.name, mark=replace(entry.mark, former=former))
