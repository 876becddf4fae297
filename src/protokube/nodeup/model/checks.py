"""Why a machine cannot become what it should be: everything at once, and before anything is changed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence

from protokube.errors import Problem, Refused
from protokube.launch.setups.values import KUBELET, MachineSetup
from protokube.nodeup import distribution
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.model import cni, containerd_config, kubelet, names, runtime, timesync
from protokube.nodeup.values import File, Installed, Link, Module, Sysctl, Task, Unit
from protokube.spec import version as versions

CGROUP_V1_REFUSED = (1, 35)
"""The version from which a kubelet does not start on cgroup v1 unless told to."""
NRI_SINCE = (1, 7)
SUPPORTED = "Debian 12, Ubuntu 22.04, Rocky Linux 9, Amazon Linux 2023, later ones and their relatives"


class Unfit(Refused):
    """A machine cannot be made what its setup says; has every reason."""

    def __init__(self, setup: MachineSetup, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        what = f"a {setup.role.lower()} of {setup.cluster}"
        lines = [f"  {line}" for each in self.problems for line in str(each).splitlines()]
        reasons = f"{count} reason{'' if count == 1 else 's'}"
        super().__init__("\n".join([f"this machine cannot become {what}, for {reasons}; nothing was changed", *lines]))


def check(setup: MachineSetup, facts: Facts) -> None:
    """Raises Unfit."""
    if found := problems(setup, facts):
        raise Unfit(setup, found)


def problems(setup: MachineSetup, facts: Facts) -> list[Problem]:
    parts = (_system, _membership, _kernel, _programs, _runtime, _clock)
    return [
        Problem(path=path, message=message, hint=hint) for part in parts for path, message, hint in part(setup, facts)
    ]


def check_apart(setup: MachineSetup, tasks: Sequence[Task]) -> None:
    """What the user's files and hooks share with ours would change at every run, for ever. Raises Unfit."""
    owners: dict[str, list[Task]] = {}
    for task in tasks:
        for place in places(task):
            owners.setdefault(place, []).append(task)
    shared = sorted(place for place, owned in owners.items() if len(owned) > 1)
    hint = "take it out of fileAssets or hooks; other fields of the spec change it"
    if found := [
        Problem(path=each, message="the spec has it, and protokube makes it itself", hint=hint) for each in shared
    ]:
        raise Unfit(setup, found)


def places(task: Task) -> set[str]:
    """Its key, and the paths of files that it writes."""
    match task:
        case File() | Link() | Installed():
            return {task.path}
        case Unit() if task.content is not None:
            return {task.key, f"/etc/systemd/system/{task.name}"}
        case Sysctl():
            return {f"/etc/sysctl.d/{task.file}"}
        case Module():
            return {f"/etc/modules-load.d/{task.file}"}
    return {task.key}


Found = Iterator[tuple[str, str, str]]
"""What it is about, the reason, and a hint."""


def _system(_setup: MachineSetup, facts: Facts) -> Found:
    name = f"{facts.distribution or 'unknown'} {facts.distribution_version}".strip()
    if facts.package_manager is PackageManager.NONE:
        yield "packages", "it has neither apt nor dnf", f"supported are {SUPPORTED}"
    elif not distribution.is_known(facts):
        yield "distribution", f"{name} is not supported", f"supported are {SUPPORTED}"
    if distribution.is_too_old(facts):
        yield "distribution", f"{name} is too old", f"supported are {SUPPORTED}"
    if not facts.systemd and not facts.image:
        yield "systemd", "it does not run here", "protokube starts everything by systemd; use an image that has it"


def _membership(setup: MachineSetup, facts: Facts) -> Found:
    wanted = setup.node_name
    if wanted and not names.is_valid(wanted):
        hint = f"at most {names.LONGEST} small letters, digits, dashes and dots"
        yield "node name", f"{wanted!r} is not the name of a Node", hint
    if facts.cluster and facts.cluster != setup.cluster:
        hint = f"reset it, or remove {names.RECORD} if nothing on it is needed"
        yield "cluster", f"it belongs to {facts.cluster} already", hint
    elif wanted and facts.node_name and facts.node_name != wanted:
        hint = f"give it this name; or reset it, and let it join as {wanted}"
        yield "node name", f"it is the node {facts.node_name} already, and should become {wanted}", hint


def _kernel(setup: MachineSetup, facts: Facts) -> Found:
    version = versions.parse(setup.kubernetes) or versions.DEFAULT
    if facts.image:
        return  # its kernel is another one
    allowed = kubelet.is_false(kubelet.setting(setup.kubelet, "failCgroupV1", "fail-cgroupv1"))
    if not facts.cgroup2 and version >= CGROUP_V1_REFUSED and not allowed:
        hint = "boot with systemd.unified_cgroup_hierarchy=1, or set kubelet.failCgroupV1: false"
        yield "cgroups", f"they are of version 1, with which kubelet {version} does not start", hint
    may_swap = kubelet.is_false(kubelet.setting(setup.kubelet, "failSwapOn", "fail-swap-on"))
    if facts.swap and not may_swap:
        hint = "`swapoff -a`, and remove it from /etc/fstab; or set kubelet.failSwapOn: false"
        yield "swap", "it is on, with which the kubelet does not start", hint


def _programs(setup: MachineSetup, facts: Facts) -> Found:
    if not setup.asset(KUBELET, facts.processor):
        yield "kubelet", f"there is none for {facts.processor} in the launch data", "make them again for this processor"
    hint = "add the archives to the launch data, or a package source to the machine"
    if why := runtime.choose(setup, facts).why_not:
        yield "containerd", why, hint
    if why := cni.why_not(setup, facts):
        yield "network plugins", why, hint
    wanted = sorted({*(each.asset for each in setup.images), *(each.asset for each in setup.programs)})
    for name in wanted:
        if not setup.asset(name, facts.processor):
            yield name, f"there is none for {facts.processor} in the launch data", "make them again for this processor"


def _runtime(setup: MachineSetup, facts: Facts) -> Found:
    chosen = runtime.choose(setup, facts)
    if setup.runtime.nri is not None and chosen.version and chosen.version < NRI_SINCE:
        hint = "leave `containerd.nri` out, or set `containerd.version`"
        yield "containerd", f"{chosen.version} has no Node Resource Interface", hint
    text = containerd_config.text(setup, facts, chosen.version)
    try:
        drivers = containerd_config.drivers(text)
    except tomllib.TOMLDecodeError as error:
        yield "containerd", f"its configuration is not TOML: {error}", "correct `containerd.configOverride`"
        return
    wanted = kubelet.cgroup_driver(setup.kubelet)
    if wrong := sorted(drivers - {wanted}):
        hint = f"set {containerd_config.SYSTEMD_CGROUP} or kubelet.cgroupDriver: both have to use the same"
        yield "cgroup driver", f"containerd is told to use {wrong[0]}, and the kubelet {wanted}", hint
    endpoint = kubelet.setting(setup.kubelet, "containerRuntimeEndpoint", "container-runtime-endpoint")
    if endpoint and endpoint.removeprefix("unix://") != setup.runtime.address:
        hint = "set containerd.address, and leave kubelet.containerRuntimeEndpoint out"
        yield "containerd", f"it listens on {setup.runtime.address}, and the kubelet connects to {endpoint}", hint


def _clock(setup: MachineSetup, facts: Facts) -> Found:
    if timesync.is_wrong(facts) and not timesync.is_managed(setup, facts):
        off = f"{abs(facts.clock_error or 0):.0f} s {'ahead' if (facts.clock_error or 0) > 0 else 'behind'}"
        where = "of the host of this container" if facts.container else "of this machine"
        yield "clock", f"it is {off}, with which no certificate can be judged", f"set the clock {where}"
