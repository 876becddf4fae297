"""Components are started again with renewed certificates where these live too short for them to notice by themselves.

A component reads its files again once in five minutes at best. Below `NOTICED` its manifest says which certificates it
was started with, so that renewed ones are another manifest. That of an API server is written when it has leave and all
others serve; that of what has a leader, and is not missed, in its master's own slots of the clock.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import dataclass, replace
from enum import Enum

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
SOON_RENEWED = 1 / 16
"""Of a life: what becomes due within it is not worth a start."""
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


class When(Enum):
    """Whether a component that runs with old certificates is to be started with new ones."""

    NOW = "now"
    IN_TURN = "as soon as it is its turn"
    LATER = "later"


def when(before: Pairs, after: Pairs, now: float, length: float, *, idle: bool, others_serve: bool) -> When:
    """One that is `idle` serves nobody, so that nobody misses it.

    One that serves goes on with an old certificate rather than leave nobody to ask: what it shows itself it reads once
    a minute.
    """
    left, due = before.ends - now, length * due_left(length)
    if idle and left <= length * LAST:
        return When.NOW
    if after.ends - now <= due + length * SOON_RENEWED:
        return When.LATER  # they are about to be renewed themselves: once is enough
    return When.IN_TURN if others_serve or left <= 0 else When.LATER


def with_keys(turn: Turn, component: ComponentPod) -> ComponentPod:
    """The component as it is to run now: with the certificates on the disk, or still with those it has."""
    length = turn.wanted.certificate_lifetime
    after = on_disk(turn, component) if length < NOTICED else None
    if after is None:
        return component
    before = _running(turn, component)
    if before is not None and before.digest != after.digest:
        is_to_go = api_server_goes if component.name == API_SERVER else follower_goes
        if not is_to_go(turn, before, after):
            after = before
    return replace(component, annotations={**component.annotations, ANNOTATION: str(after)})


def api_server_goes(turn: Turn, before: Pairs, after: Pairs) -> bool:
    now, length = turn.world.clock.now(), turn.wanted.certificate_lifetime
    idle, serve = not is_ready(turn), others_serve(turn)
    at = when(before, after, now, length, idle=idle, others_serve=serve)
    return at is When.NOW or (at is When.IN_TURN and turn.world.presence.leave())


def follower_goes(turn: Turn, before: Pairs, after: Pairs) -> bool:
    """Of the others one leads, and another takes over if it ends: nobody is asked for leave."""
    now, length, place = turn.world.clock.now(), turn.wanted.certificate_lifetime, place_of(turn)
    at = when(before, after, now, length, idle=True, others_serve=True)
    return at is When.NOW or (at is When.IN_TURN and in_slot(now, slot_of_starts(length, place.count), place))


def slot_of_starts(length: float, count: int) -> float:
    """Between due and ended, everybody has a whole one."""
    return length * due_left(length) / (count + 1)


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
