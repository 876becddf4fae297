"""The steps of a round, in their order."""

from __future__ import annotations

import logging

from protokube.agent import threads
from protokube.agent.cluster import podnetwork, steps
from protokube.agent.controlplane import components, etcd_member, keys, kubelet, nodekeys
from protokube.agent.delivery import revision
from protokube.agent.edges import Edges
from protokube.agent.etcd import agreement, space
from protokube.agent.names import api_names, hosts_file, member_names
from protokube.agent.report import Report
from protokube.agent.round import Round, Step
from protokube.agent.volume import diskwatch, fence, lost, phases, raftmarks
from protokube.errors import Refused, TryLater
from protokube.launch.machine import MasterConfig

log = logging.getLogger("protokube.agent")

ROUND: tuple[tuple[str, Step], ...] = (
    ("fence", fence.sync),  # do we still hold what we serve? first, always
    ("disks", diskwatch.sync),  # does what we serve still take writes? if not, it is unmounted and mounted again
    ("keys", keys.sync),  # our certificate as a client of etcd; members get theirs when they are started
    ("nodekeys", nodekeys.sync),  # the kubelet's certificates
    ("volumes", phases.sync),  # attach the disks, prove them, mount them
    ("names", member_names.sync),  # peers must find us before etcd starts
    ("hosts", hosts_file.sync),  # the same without a zone: each master writes its own hosts file
    ("etcd", etcd_member.sync),  # one manifest for each member we hold
    ("raft mark", raftmarks.sync),  # record each log's position off the disk, to recognise older copies
    ("components", components.sync),  # the rest of the control plane
    ("lost", lost.sync),  # the elected master replaces a lost disk
    ("agreement", agreement.sync),  # do the members hold the same data? if not, a person decides
    ("space", space.sync),  # an etcd that is full is compacted, defragmented and takes writes again
    ("api", api_names.sync),  # the elected master publishes the addresses of ready API servers
    ("cluster", steps.sync),  # objects in the Kubernetes API, once it answers
    ("podnetwork", podnetwork.sync),  # addresses for our pods, and routes to all others'
    ("threads", threads.sync),  # report background threads that fail or hang
    ("kubelet", kubelet.sync),  # it starts whatever the others prepared
    ("revision", revision.sync),  # last: is all of it healthy? a changed configuration goes one master after the other
)


def run_round(edges: Edges, wanted: MasterConfig) -> Round:
    """One pass, in the order bring-up needs. No step sleeps; the next round retries."""
    round_ = Round(edges=edges, wanted=wanted, report=Report())
    for name, sync in ROUND:
        try:
            sync(round_)
        except TryLater as why:
            round_.report.waiting(name, why)
        except Refused as why:
            round_.report.needs_a_person(name, why)
        except OSError as why:  # a full or broken disk of this machine: reported, and retried in the next round
            round_.report.waiting(name, f"{why.strerror or why}: {why.filename or 'unknown file'}")
        except Exception as bug:  # a bug in one step must not keep the kubelet down
            log.exception("%s: unexpected error, please report it", name)
            round_.report.broken(name, f"{type(bug).__name__}: {bug}")
    round_.forget()
    return round_
