"""The user's hooks, as units: they start at each boot, and now.

A oneshot unit counts as running after it ended well, or each run of nodeup would start it again.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from protokube.launch.setups.values import ContainerHook, HookSetup, MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import containerd_config, files, proxy, runtime
from protokube.nodeup.values import Unit

NAMESPACE = "protokube-hooks"
ONESHOT = re.compile(r"^\s*Type\s*=\s*oneshot\s*$", re.MULTILINE)
REMAINS = re.compile(r"^\s*RemainAfterExit\s*=", re.MULTILINE)
BEFORE = re.compile(r"^\s*Before\s*=.*\bkubelet\.service\b", re.MULTILINE)
REMAIN = "RemainAfterExit=yes\n"
MOUNTS = {"/": "/rootfs", "/run/dbus": "/run/dbus", "/run/systemd": "/run/systemd"}
"""By folder of the machine, where a container sees it, as in the original."""


def hook_tasks(setup: MachineSetup, facts: Facts, packages: tuple[str, ...]) -> Iterator[Unit]:
    """`packages`: the keys of the tasks that bring packages, which hooks may call."""
    for each in setup.hooks:
        if each.disabled:
            yield Unit(name=each.name, enabled=False, running=False)
            continue
        needs = (*packages, *files.keys(setup, facts))
        text, drop_ins = _text(each, setup, facts), dict[str, str]()
        if each.unit and ONESHOT.search(text) and not REMAINS.search(text):
            drop_ins["10-protokube.conf"] = f"[Service]\n{REMAIN}"
        if each.container:
            needs = (*needs, f"unit {runtime.UNIT}")
            drop_ins |= proxy.drop_ins(setup)
        started = True if each.enabled else None
        yield Unit(name=each.name, content=text, drop_ins=drop_ins, enabled=each.enabled, running=started, after=needs)


def before_kubelet(setup: MachineSetup, units: Sequence[Unit]) -> list[Unit]:
    """Those that the user wants done before the kubelet starts, and so before the agent that starts it."""
    early = {
        each.name
        for each in setup.hooks
        if each.enabled and not each.disabled and ("kubelet.service" in each.before or BEFORE.search(each.unit))
    }
    return [each for each in units if each.name in early]


def _text(hook: HookSetup, setup: MachineSetup, facts: Facts) -> str:
    if hook.unit:
        return hook.unit.rstrip("\n") + "\n"
    service = hook.service.rstrip("\n") + "\n"
    head = [f"Description=Hook {hook.name} of the cluster's spec"]
    requires = hook.requires
    if hook.container:
        service = _container(hook.name, hook.container, setup, facts)
        requires = (runtime.UNIT, *requires)
        head.append("After=network-online.target")
        head.append("Wants=network-online.target")
    elif ONESHOT.search(service) and not REMAINS.search(service):
        service += REMAIN
    head += [line for each in dict.fromkeys(requires) for line in (f"Requires={each}", f"After={each}")]
    head += [f"Before={each}" for each in hook.before]
    lines = "\n".join(head)
    install = "\n[Install]\nWantedBy=multi-user.target\n" if hook.enabled else ""
    return f"[Unit]\n{lines}\n\n[Service]\n{service}{install}"


def _container(name: str, container: ContainerHook, setup: MachineSetup, facts: Facts) -> str:
    """Run by containerd's own client, in a namespace of its own: the kubelet removes no image there."""
    chosen = runtime.choose(setup, facts)
    ctr = [chosen.ctr, f"--address={setup.runtime.address}", f"--namespace={NAMESPACE}"]
    ident = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
    mounts = [f"--mount=type=bind,src={src},dst={dst},options=rbind:rw" for src, dst in MOUNTS.items()]
    environment = [f"--env={name}={value}" for name, value in sorted(container.environment.items())]
    listed = shlex.join([*ctr, "images", "list", "--quiet"])
    grep = shlex.join(["grep", "--quiet", "--line-regexp", "--fixed-strings", container.image])
    pull = shlex.join([*ctr, "images", "pull", f"--hosts-dir={containerd_config.HOSTS}", container.image])
    get = ["/bin/sh", "-c", f"{listed} | {grep} || {pull}"]
    run = [*ctr, "run", "--rm", "--privileged", "--net-host", *mounts, *environment, container.image, ident]
    clean = [*ctr, "containers", "delete", ident]
    return (
        "Type=oneshot\n"
        f"{REMAIN}"
        # What a killed container left behind has its name.
        f"ExecStartPre=-{_line(clean)}\n"
        f"ExecStartPre={_line(get)}\n"
        f"ExecStart={_line([*run, *container.command])}\n"
    )


def _line(words: list[str]) -> str:
    """A command line of systemd, which expands percent and dollar signs, and reads backslashes in quotes."""
    return " ".join(_word(each) for each in words)


def _word(word: str) -> str:
    plain = word.replace("%", "%%").replace("$", "$$")
    if plain == shlex.quote(plain) and "\\" not in plain:
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
