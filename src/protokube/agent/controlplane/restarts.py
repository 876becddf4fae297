"""Restart the control plane with renewed certificates, where these live too short for a reload in time.

A component reloads its files at most every five minutes. With a lifetime below `NOTICED`, manifests carry a digest of
the certificates they were written with, so that renewed ones change the manifests. All components of a master restart
together, when it holds the maintenance lease and all other API servers serve: they depend on the API server, and it
does not exit while they keep their connections open.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from protokube.agent import links
from protokube.agent.round import Round
from protokube.config.places import own_folder
from protokube.manifests.component import ComponentPod, reads
from protokube.manifests.etcd import PKI
from protokube.pki.expiry import end_of
from protokube.pki.renewal import due_left

NOTICED = 1800.0
"""Certificate lifetime in seconds from which a component reloads in time: a quarter is left at the latest renewal."""
LAST = 1 / 8
"""Fraction of the lifetime: with less than this left, a component that serves no clients restarts out of turn."""
SOON_RENEWED = 1 / 16
"""Fraction of the lifetime: certificates due for renewal within it are not worth a restart."""
API_SERVER = "kube-apiserver"
ANNOTATION = "protokube.io/keys"
FORMAT = "%Y-%m-%dT%H:%M:%SZ"
WRITTEN = re.compile(rf"{re.escape(ANNOTATION)}: ['\"]?([0-9a-f]{{16}}) until ([-0-9T:]+Z)")


@dataclass(frozen=True, slots=True)
class Pairs:
    """The certificates of the components: their digest, and when the first of them expires."""

    digest: str
    ends: float

    def __str__(self) -> str:
        return f"{self.digest} until {dt.datetime.fromtimestamp(self.ends, dt.UTC).strftime(FORMAT)}"


def written_in(manifest: str) -> Pairs | None:
    """The certificates a component was started with; None if its manifest lacks the annotation."""
    found = WRITTEN.search(manifest)
    if found is None:
        return None
    end = dt.datetime.strptime(found[2], FORMAT).replace(tzinfo=dt.UTC)
    return Pairs(found[1], end.timestamp())


class When(Enum):
    """When to restart components that run with old certificates."""

    NOW = "now"
    IN_TURN = "as soon as it is its turn"
    LATER = "later"


def when(before: Pairs, after: Pairs, now: float, length: float, *, idle: bool, others_serve: bool) -> When:
    """An `idle` API server serves no clients, so it may restart at any time.

    One that serves keeps its old certificate rather than leave the cluster without an API server: it reloads its
    serving certificate once a minute.
    """
    left, due = before.ends - now, length * due_left(length)
    if idle and left <= length * LAST:
        return When.NOW
    if after.ends - now <= due + length * SOON_RENEWED:
        return When.LATER  # the new ones are about to be renewed too: one restart is enough
    return When.IN_TURN if others_serve or left <= 0 else When.LATER


def wanted_keys(round_: Round, components: Iterable[ComponentPod]) -> Pairs | None:
    """The certificates that components should run with now: those on the disk, or still the old ones; None if they
    need no restarts."""
    length = round_.wanted.certificate_lifetime
    if length >= NOTICED:
        return None
    before, after = _running(round_), on_disk(round_, components)
    if before is None or after is None or before.digest == after.digest:
        return after or before
    now, idle, serve = round_.edges.clock.now(), not is_ready(round_), others_serve(round_)
    at = when(before, after, now, length, idle=idle, others_serve=serve)
    goes = at is When.NOW or (at is When.IN_TURN and round_.edges.presence.may_restart_api_server())
    return after if goes else before


def with_keys(component: ComponentPod, pairs: Pairs | None) -> ComponentPod:
    return replace(component, annotations={**component.annotations, ANNOTATION: str(pairs)}) if pairs else component


def on_disk(round_: Round, components: Iterable[ComponentPod]) -> Pairs | None:
    """The certificates on the disk; None if the components use none, or one cannot be read."""
    texts = []
    for name in sorted({name for each in components for name in used(round_, each)}):
        try:
            texts.append(round_.edges.inside(f"{PKI}/{name}.crt").read_bytes())
        except OSError:
            return None
    if not texts:
        return None
    try:
        return Pairs(hashlib.sha256(b"".join(texts)).hexdigest()[:16], min(end_of(each) for each in texts))
    except ValueError:
        return None


def used(round_: Round, component: ComponentPod) -> list[str]:
    """Names of the certificates that a component uses: by its flags, and by kubeconfigs in its flags or files."""
    files, wanted = set(reads(component)), round_.wanted
    texts = component.files.values()
    users = {user for path, user in wanted.kubeconfigs.items() if path in files or any(path in text for text in texts)}
    places = (own_folder(component.name), PKI)
    named = {name for name in wanted.certificates if any(f"{place}/{name}.crt" in files for place in places)}
    return sorted(named | users & wanted.certificates.keys())


def is_ready(round_: Round) -> bool:
    """Whether our own API server is ready; True if unknown."""
    serving = round_.edges.presence.serving()
    return serving is None or round_.edges.me.id in serving


def others_serve(round_: Round) -> bool:
    """Whether every other live master has a ready API server; False if unknown."""
    presence, me = round_.edges.presence, round_.edges.me.id
    live, serving = presence.live(), presence.serving()
    return live is not None and serving is not None and all(each in serving for each in live if each != me)


def _running(round_: Round) -> Pairs | None:
    try:
        return written_in(round_.edges.inside(f"{links.DIRECTORY}/{API_SERVER}.manifest").read_text(errors="replace"))
    except OSError:
        return None
