"""Everything that should be true of a machine, in the order in which a person would do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import agent, checks, hooks, packages
from protokube.nodeup.model.assets import program_tasks
from protokube.nodeup.model.cni import cni_tasks
from protokube.nodeup.model.files import file_tasks
from protokube.nodeup.model.folders import folder_tasks
from protokube.nodeup.model.kernel import kernel_tasks
from protokube.nodeup.model.kubelet import kubelet_tasks
from protokube.nodeup.model.logs import log_tasks
from protokube.nodeup.model.mounts import mount_tasks
from protokube.nodeup.model.names import name_tasks
from protokube.nodeup.model.proxy import proxy_tasks
from protokube.nodeup.model.runtime import image_tasks, runtime_tasks
from protokube.nodeup.model.timesync import time_tasks
from protokube.nodeup.model.updates import update_tasks
from protokube.nodeup.model.users import user_tasks
from protokube.nodeup.values import Asset, Packages, Task


def tasks_of(setup: MachineSetup, facts: Facts) -> tuple[Task, ...]:
    """Raises checks.Unfit, with every reason, if this machine cannot be made so."""
    checks.check(setup, facts)
    proxies = list(proxy_tasks(setup, facts))
    clock = [_after(each, [], proxies) for each in time_tasks(setup, facts)]
    later = (_after(each, clock, proxies) for each in _rest(setup, facts))
    found: list[Task] = []
    for each in (*proxies, *clock, *later):
        if each not in found:  # two concerns may need the same
            found.append(each)
    checks.check_apart(setup, found)
    return tuple(found)


def _after(task: Task, clock: list[Task], proxies: list[Task]) -> Task:
    """What downloads checks certificates, which a wrong clock judges wrongly; packages come through the proxy."""
    if not isinstance(task, Packages | Asset):
        return task
    first = [*clock, *(proxies if isinstance(task, Packages) else ())]
    return replace(task, after=(*task.after, *(each.key for each in first)))


def _rest(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    base = packages.base(setup, facts)
    brought = list(packages.package_tasks(setup, facts))
    runtime = list(runtime_tasks(setup, facts, base))
    images = list(image_tasks(setup, facts))
    units = list(hooks.hook_tasks(setup, facts, tuple(each.key for each in brought)))
    kubelet = [*cni_tasks(setup, facts, base), *kubelet_tasks(setup, facts)]

    yield from name_tasks(setup, facts)
    yield from brought
    yield from update_tasks(setup, facts)
    yield from kernel_tasks(setup, facts)
    yield from mount_tasks(setup, facts)
    yield from folder_tasks(setup, facts)
    yield from user_tasks(setup, facts)
    yield from file_tasks(setup, facts)
    yield from log_tasks(setup, facts, base)
    yield from program_tasks(setup, facts)
    yield from runtime
    yield from images
    yield from units
    yield from kubelet  # neither enabled nor started: the agent does it
    yield from agent.agent_tasks(setup, facts, [*runtime, *images, *hooks.before_kubelet(setup, units), *kubelet])
