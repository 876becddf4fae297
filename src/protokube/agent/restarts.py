"""Components are started again with renewed certificates where these live too short for them to notice by themselves.

A component reads its files again once in five minutes at best. Below `NOTICED` its manifest says which certificates it
was started with, so that renewed ones are another manifest; that is written when no other API server is away: each
master has its own slots of the clock for it, and looks whether the others serve.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import dataclass, replace

from protokube.agent import links
from protokube.agent.world import Turn
from protokube.manifests.component import ComponentPod, reads
from protokube.manifests.etcd import PKI
from protokube.pki.ending import end_of
from protokube.pki.renewal import Place, due_left, in_slot

NOTICED = 1800.0
"""Seconds of life from which a component notices in time: a quarter is left when the last one is renewed."""
LAST = 1 / 8
"""Of a life: with less than this left, whoever serves nobody waits for no turn."""
API_SERVER = "kube-apiserver"
ANNOTATION = "protokube.io/keys"
FORMAT = "%Y-%m-%dT%H:%M:%SZ"
WRITTEN = re.compile(rf"{re.escape(ANNOTATION)}: ['\"]?([0-9a-f]{{16}}) until ([-0-9T:]+Z)")


@dataclass(frozen=True, slots=True)
class Pairs:
    """The certificates of one component: which they are, and when the first of them ends."""

    digest: str
    ends: float

    def __str__(self) -> str:
        return f"{self.digest} until {dt.datetime.fromtimestamp(self.ends, dt.UTC).strftime(FORMAT)}"


def written_in(manifest: str) -> Pairs | None:
    """Those that a component was started with; None if its manifest does not say."""
    found = WRITTEN.search(manifest)
    if found is None:
        return None
    end = dt.datetime.strptime(found[2], FORMAT).replace(tzinfo=dt.UTC)
    return Pairs(found[1], end.timestamp())


def may_start(
    before: Pairs, after: Pairs, now: float, place: Place, length: float, *, idle: bool, others_serve: bool
) -> bool:
    """Whether a component that runs with the one is to be started with the other now.

    An API server that is `idle` serves nobody, so that nobody misses it. One that serves goes on with an old
    certificate rather than leave nobody to ask: what it shows itself it reads once a minute.
    """
    left = before.ends - now
    if idle and left <= length * LAST:
        return True
    slot = length * due_left(length) / (place.count + 1)  # between due and ended, everybody has a whole one
    if after.ends - now <= length * due_left(length) + slot / 2:
        return False  # they are about to be renewed themselves: once is enough
    return in_slot(now, slot, place) and (others_serve or left <= 0)


def with_keys(turn: Turn, component: ComponentPod) -> ComponentPod:
    """The component as it is to run now: with the certificates on the disk, or still with those it has."""
    length = turn.wanted.certificate_lifetime
    after = on_disk(turn, component) if length < NOTICED else None
    if after is None:
        return component
    before = _running(turn, component)
    if before is not None and before.digest != after.digest:
        told = {"idle": True, "others_serve": True}  # of the others one leads, and takes over if that ends
        if component.name == API_SERVER:
            told = {"idle": not is_ready(turn), "others_serve": others_serve(turn)}
        if not may_start(before, after, turn.world.clock.now(), place_of(turn), length, **told):
            after = before
    return replace(component, annotations={**component.annotations, ANNOTATION: str(after)})


def on_disk(turn: Turn, component: ComponentPod) -> Pairs | None:
    """None if it uses no certificate that is renewed, or one cannot be read."""
    texts = []
    for name in used(turn, component):
        try:
            texts.append(turn.world.inside(f"{PKI}/{name}.crt").read_bytes())
        except OSError:
            return None
    if not texts:
        return None
    try:
        return Pairs(hashlib.sha256(b"".join(texts)).hexdigest()[:16], min(end_of(each) for each in texts))
    except ValueError:
        return None


def used(turn: Turn, component: ComponentPod) -> list[str]:
    """Names of the certificates in the files that its flags name, and in the kubeconfigs among them or in them."""
    files, wanted = set(reads(component)), turn.wanted
    texts = component.files.values()
    users = {user for path, user in wanted.kubeconfigs.items() if path in files or any(path in text for text in texts)}
    return sorted(name for name in wanted.certificates if name in users or f"{PKI}/{name}.crt" in files)


def is_ready(turn: Turn) -> bool:
    """Whether our own API server is; yes, if nobody can tell."""
    serving = turn.world.presence.serving()
    return serving is None or turn.world.me.id in serving


def others_serve(turn: Turn) -> bool:
    """Whether every other master that lives has an API server that is ready; no, if nobody can tell."""
    presence, me = turn.world.presence, turn.world.me.id
    live, serving = presence.live(), presence.serving()
    return live is not None and serving is not None and all(each in serving for each in live if each != me)


def place_of(turn: Turn) -> Place:
    """Masters take turns by the members of etcd that they hold, or are there to hold."""
    if not turn.wanted.etcd:
        return Place()
    etcd = turn.wanted.etcd[0]
    held = {home.member.name for home in turn.homes if home.etcd.key == etcd.key}
    own = {each.name for each in etcd.members if each.group == turn.world.me.group}
    members = sorted(each.name for each in etcd.members)
    mine = min(held or own or members)
    return Place(members.index(mine), len(members))


def _running(turn: Turn, component: ComponentPod) -> Pairs | None:
    try:
        return written_in(turn.world.inside(f"{links.DIRECTORY}/{component.file_name}").read_text(errors="replace"))
    except OSError:
        return None
