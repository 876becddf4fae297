"""Is everything on this master healthy with its revision, and may something restart here without harm to the others?

etcd restarts here only while every other voter answers, follows the leader and has applied nearly all of its log, twice
in a row: a voter that lags would leave the cluster without a quorum for as long as it catches up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from protokube.agent import links
from protokube.agent.cache import StepCache
from protokube.agent.controlplane import components, kubelet, kubelet_files, restarts
from protokube.agent.delivery import present
from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import fatal_messages, mounted_volumes
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd import Status
from protokube.host import podlogs
from protokube.host.running import Command, Runs
from protokube.launch.change import API_SERVER, KUBELET, kubelet_changes
from protokube.launch.machine import EtcdCluster, MasterConfig
from protokube.launch.versions import lowered, may_run
from protokube.manifests.component import PROGRAMS, ComponentPod, words
from protokube.manifests.etcd import MANIFESTS
from protokube.members.start_values import Listed

LAG = 1000
"""Entries of the log that a member may be behind the leader and still count as caught up."""
TWICE = 2
SECONDS = 1.0
"""For the answers of all members."""
ENDED, STUCK = 60.0, 180.0
"""Seconds after which something that does not run, or runs and is not healthy, is not expected to come up any more."""
STEADY, SETTLED = 5.0, 20.0
"""Seconds for which a kubelet must have run; and one of another version than before, which may restart every pod."""
LINES, LENGTH = 3, 200
"""Of a log: how many of its last lines are shown, and how much of each."""
CRI = re.compile(r"\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP]\S* ?")
STEPS, BEFORE = ("etcd", "components", "kubelet"), ("fence", "disks", "volumes")
"""Steps that carry out a revision; and those without which they have nothing to do."""
UNSEEN = "the other masters cannot be seen, because etcd has no quorum"
NAMESPACE, ETCD_CONTAINER, CONFIG_FILE = "kube-system", "etcd-container", "ETCD_CONFIG_FILE"


@dataclass(slots=True)
class HealthCache(StepCache):
    good: dict[str, int] = field(default_factory=dict)
    """By etcd cluster: how many consecutive looks found all other voters healthy. If lost, it restarts at zero."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something on this master that is not healthy."""

    what: str
    why: str
    pod: tuple[str, str] | None = None
    """Its pod and container, whose log has the reason."""
    ended: bool = False
    """No process of it runs."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def others(round_: Round, changed: tuple[str, ...]) -> str:
    """Why nothing of `changed` may restart here now; "" if it may. What does not work here may always restart."""
    if API_SERVER in changed and _is_needed(round_) and not restarts.others_serve(round_):
        return "the API servers of the other masters are not all ready"
    for etcd in round_.wanted.etcd:
        if f"etcd {etcd.key}" in changed and (why := _other_voters(round_, etcd)):
            return why
    return ""


def absent(round_: Round) -> str:
    """Why not all masters are known to be up; "" if they are. The only one needs no other."""
    expected = max((len(each.members) for each in round_.wanted.etcd), default=0)
    seen = round_.edges.presence.revisions()
    if seen is None:
        return UNSEEN if expected > 1 else ""
    return f"{len(seen)} of {expected} masters are up" if len(seen) < expected else ""


def idle(round_: Round) -> bool:
    """Whether no process of etcd is on this machine, and no API server that is known to be ready."""
    return not _serves(round_) and all(each.ended for disk in round_.mounted for each in _runs(round_, disk))


def _runs(round_: Round, disk: MountedVolume) -> Iterator[Trouble]:
    log = (disk.etcd.pod.name, ETCD_CONTAINER)
    yield next(_unlike_manifest(round_, _etcd_command(disk), disk.name, log), Trouble(disk.name, "it runs", log))


def _is_needed(round_: Round) -> bool:
    """Whether our API server serves, and another one has to meanwhile."""
    return restarts.is_ready(round_) and any(len(etcd.members) > 1 for etcd in round_.wanted.etcd)


def _other_voters(round_: Round, etcd: EtcdCluster) -> str:
    own = {disk.member.name for disk in round_.mounted if disk.etcd.key == etcd.key}
    good = round_.edges.cache.of(HealthCache).good
    try:
        listed = round_.edges.etcd[etcd.key].members() if len(etcd.members) > 1 else ()
    except (TryLater, Refused) as error:
        good[etcd.key] = 0
        return f"etcd {etcd.key} has no quorum: {error.message}"
    if listed and len(listed) < len(etcd.members):
        good[etcd.key] = 0
        return f"etcd {etcd.key} lists {len(listed)} of {len(etcd.members)} members"
    statuses = round_.edges.etcd[etcd.key].survey(SECONDS) if listed else {}
    for each in listed:
        if each.name not in own and (why := lagging(each, statuses)):
            good[etcd.key] = 0
            return why
    good[etcd.key] = good.get(etcd.key, 0) + 1
    if listed and good[etcd.key] < TWICE:
        round_.within(SECONDS)
        return f"the members of etcd {etcd.key} are looked at twice"
    return ""


def lagging(member: Listed, statuses: Mapping[str, Status]) -> str:
    """Why a member does not count as a healthy voter; "" if it does."""
    status = statuses.get(member.name)
    if status is None:
        return f"{member.name or f'member {member.id:x}'} does not answer"
    if member.learner or status.learner:
        return f"{member.name} is a learner"
    if not status.leader:
        return f"{member.name} knows no leader"
    if status.errors:
        return f"{member.name} reports {'; '.join(status.errors)}"
    newest = max(each.raft_index for each in statuses.values())
    if newest - status.applied_index > LAG:
        return f"{member.name} is {newest - status.applied_index} entries behind"
    return ""


def unreadable(round_: Round, before: MasterConfig, after: MasterConfig) -> Iterator[str]:
    """What etcd's data is too new for, where programs would go back from one configuration to another.

    TryLater if no member answers.
    """
    for key in lowered(before, after):
        wanted, agreed = after.etcd_cluster(key), round_.edges.etcd[key].cluster_version()
        if wanted and not may_run(wanted, agreed):
            series = agreed.rpartition(".")[0]
            yield f"all members of etcd {key} have run {series}, and {wanted.version} cannot read its data"


def outdated(round_: Round, before: MasterConfig, after: MasterConfig) -> tuple[str, ...]:
    """The etcd clusters whose member here does not start, because only the newer program of `after` reads its data."""
    newer = lowered(after, before)
    mounted = (disk for disk in round_.mounted if disk.etcd.key in newer)
    return tuple(f"etcd {disk.etcd.key}" for disk in mounted if fatal_messages.too_new(round_, disk))


def troubles(round_: Round) -> Iterator[Trouble]:
    """What on this master is not healthy with the revision that it runs, in the order in which things come up."""
    report = round_.report
    for each in (*report.waits, *report.bugs, *report.person):
        aborted = not each.about  # the rest of that step was not done
        if (each.step in STEPS and (aborted or each in report.waits)) or (each.step in BEFORE and aborted):
            yield Trouble(each.about or each.step, each.text)
    for disk in round_.mounted:
        yield from _member(round_, disk)
    for component in round_.wanted.components:
        yield from _component(round_, component)
    if round_.wanted.components and not _serves(round_):
        yield Trouble(API_SERVER, "it is not ready", _pod_of(API_SERVER))
    if round_.wanted.kubelet_kubeconfig and (why := _kubelet(round_)):
        yield Trouble(KUBELET, why, ended=True)


def _serves(round_: Round) -> bool:
    return round_.edges.me.id in (round_.edges.presence.serving() or ())


def _member(round_: Round, disk: MountedVolume) -> Iterator[Trouble]:
    log = (disk.etcd.pod.name, ETCD_CONTAINER)
    if unlike := next(_unlike_manifest(round_, _etcd_command(disk), disk.name, log), None):
        yield unlike
        return
    client = round_.edges.etcd[disk.etcd.key]
    try:
        listed = next((each for each in client.members() if disk.member.peer_url in each.peer_urls), None)
        statuses = client.survey(SECONDS)
    except (TryLater, Refused) as error:
        yield Trouble(disk.name, error.message, log)
        return
    if listed is None:
        yield Trouble(disk.name, "it is not in etcd's member list", log)
    elif why := lagging(listed, statuses):
        yield Trouble(disk.name, why, log)


def _component(round_: Round, component: ComponentPod) -> Iterator[Trouble]:
    pod = _pod_of(component.name)
    if unlike := next(_unlike_manifest(round_, _command(round_, component), component.name, pod), None):
        yield unlike
    elif component.probe and component.name != API_SERVER and (why := round_.edges.probe(component.probe)):
        yield Trouble(component.name, why, pod)


def _unlike_manifest(round_: Round, command: Command, what: str, pod: tuple[str, str]) -> Iterator[Trouble]:
    runs = mounted_volumes.on_volume(  # etcd's manifest is on its volume, whose disk may hang
        lambda: round_.edges.processes.runs(command), f"reading {command.manifest}", SECONDS
    )
    if runs is not Runs.CURRENT:
        yield Trouble(what, runs.value, pod, ended=runs is Runs.NOT)


def _etcd_command(disk: MountedVolume) -> Command:
    pod = disk.etcd.pod
    file = {name: value for name, value in pod.environment.items() if name == CONFIG_FILE}
    return Command(program="etcd", arguments=(), environment=file, manifest=disk.point / MANIFESTS / pod.file_name)


def _command(round_: Round, component: ComponentPod) -> Command:
    flags = components.with_advertised_address(component, round_.edges.me.address).flags
    start, *more = component.program or (f"{PROGRAMS}/{component.name}",)
    return Command(
        program="" if component.program else start.rpartition("/")[2],
        arguments=(*more, *words(flags)),
        environment={},
        manifest=round_.edges.inside(f"{links.DIRECTORY}/{component.file_name}"),
    )


def _kubelet(round_: Round) -> str:
    """A kubelet that rejects its configuration ends within seconds, and its unit starts it again."""
    running = round_.edges.units.running_for(kubelet.UNIT)
    if running is None:
        return Runs.NOT.value
    now = round_.edges.clock.now()
    if kubelet_files.newer(kubelet_files.write_times(round_), now - running, now):
        return Runs.OLD.value
    former = present.read(round_.edges.inside(present.FORMER))
    steady = SETTLED if former and kubelet_changes(former.master, round_.wanted) else STEADY
    if running < steady:
        round_.within(steady - running)
        return f"it has run for less than {steady:.0f} s"
    return ""


def _pod_of(name: str) -> tuple[str, str]:
    return name, name


def drift(round_: Round) -> Iterator[Trouble]:
    """What runs otherwise than its manifest says, although nothing restarts here."""
    for disk in round_.mounted:
        if links.is_linked(round_, disk):
            yield from _unlike_manifest(round_, _etcd_command(disk), disk.name, (disk.etcd.pod.name, ETCD_CONTAINER))
    for component in round_.wanted.components:
        yield from _unlike_manifest(round_, _command(round_, component), component.name, _pod_of(component.name))


def broken(round_: Round, found: Trouble, lasted: float, down: float) -> str:
    """What does not come up, with the last lines of its log; "" while it may still.

    `lasted`: since something is not healthy. `down`: since this does not run; the old process may take long to end, and
    then nothing runs until the new one starts.
    """
    if lasted < STUCK and down < ENDED:
        return ""
    logged = _logged(round_, found)
    return f"{found} after {lasted:.0f} s{f'; it logged: {logged}' if logged else ''}"


def _logged(round_: Round, found: Trouble) -> str:
    if found.pod is None:
        return ""
    names = [each.name for each in round_.wanted.components] + [each.pod.name for each in round_.wanted.etcd]
    try:
        files = podlogs.newest(round_.edges.inside(podlogs.FOLDER), NAMESPACE, *found.pod, names)
        lines = [CRI.sub("", line).strip() for line in (podlogs.lines(files[-1]) if files else ())]
    except (OSError, ProtokubeError):
        return ""
    return " | ".join(line[:LENGTH] for line in [line for line in lines if line][-LINES:])
