"""The concerns of a machine one by one: clock, packages, kernel, names, hooks, keys, updates, logs, proxy, agent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.config import completed
from builders.setups import (
    DEBIAN_12,
    MACHINES,
    ROCKY_9,
    UBUNTU_2404,
    a_setup,
    derived,
    packages,
    the_file,
    the_unit,
)  # fmt: skip
from protokube.launch.boot import LaunchDocument
from protokube.launch.derive import from_config
from protokube.launch.setups.values import FileSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import agent, users
from protokube.nodeup.model.kubelet import MACHINE_ENV
from protokube.nodeup.model.whole import tasks_of
from protokube.nodeup.values import Command, Directory, File, Module, Packages, Sysctl, Task, Unit

ROOT = Path(__file__).resolve().parents[4]
INSIDE = replace(DEBIAN_12, container=True)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 alice"


def tasks(facts: Facts = DEBIAN_12, role: str = "Node", **cluster: Any) -> tuple[Task, ...]:
    return tasks_of(a_setup(role, **cluster), facts)


def units(found: tuple[Task, ...]) -> set[str]:
    return {each.name for each in found if isinstance(each, Unit)}


def sysctls(found: tuple[Task, ...]) -> dict[str, str]:
    (only,) = (each for each in found if isinstance(each, Sysctl))
    return dict(only.values)


# the clock


def test_a_time_service_that_is_active_is_kept_since_another_package_would_remove_it() -> None:
    found = tasks(replace(DEBIAN_12, time_service="ntpsec.service"))

    assert "ntpsec.service" in units(found)
    assert "systemd-timesyncd" not in packages(found)


def test_a_time_service_among_the_packages_of_the_spec_is_the_one_that_is_used() -> None:
    found = tasks(replace(DEBIAN_12, time_service="systemd-timesyncd.service"), packages=["chrony", "jq"])

    assert [each.names for each in found if isinstance(each, Packages)][::2] == [("chrony",), ("jq",)]
    assert the_unit(found, "chrony.service").after == ("packages chrony",)
    assert "systemd-timesyncd.service" not in units(found)


@pytest.mark.parametrize("facts", [INSIDE, DEBIAN_12], ids=["container", "unmanaged"])
def test_a_clock_that_is_not_ours_to_set_is_left_alone(facts: Facts) -> None:
    found = tasks(facts, ntp={"managed": facts.container}, packages=["chrony"])

    assert not units(found) & {"chrony.service", "systemd-timesyncd.service"}
    assert [each.names for each in found if isinstance(each, Packages)][-1] == ("chrony",)


def test_only_a_wrong_clock_is_waited_for() -> None:
    """A machine without time servers, whose clock is right, comes up too."""
    for error, waits in ((None, False), (5.0, False), (-31.0, True)):
        found = tasks(replace(DEBIAN_12, clock_error=error))

        assert any(each.key == "command the clock is synchronized" for each in found) is waits


# packages and the kernel


def test_a_package_is_named_in_one_task_only() -> None:
    found = tasks(packages=["socat", "jq", "jq", "unattended-upgrades"], updatePolicy="automatic")
    named = [name for each in found if isinstance(each, Packages) for name in each.names]

    assert len(named) == len(set(named))
    assert {"socat", "jq", "unattended-upgrades"} < set(named)


def test_a_wrong_package_of_the_spec_stops_nothing_but_the_hooks_that_may_call_it() -> None:
    hook = {"name": "own", "manifest": "ExecStart=/usr/bin/jq"}
    found = tasks(packages=["jq"], hooks=[hook], role="Master")

    assert [each.key for each in found if "packages of the spec" in each.after] == ["unit own.service"]


def test_in_a_container_the_kernel_is_left_to_the_host() -> None:
    found = tasks(INSIDE)

    assert not [each for each in found if isinstance(each, Module)]
    assert {name.split(".")[0] for name in sysctls(found)} == {"net"}
    assert not {name for name in sysctls(found) if "bridge" in name or name.endswith("mem_max")}


def test_parameters_of_the_spec_override_ours_also_in_a_container() -> None:
    asked = ["net.core.somaxconn=1", "vm.max_map_count=2"]

    for facts in (DEBIAN_12, INSIDE):
        found = sysctls(tasks(facts, sysctlParameters=asked))
        assert (found["net.core.somaxconn"], found["vm.max_map_count"]) == ("1", "2")


def test_what_a_kubelet_requires_of_the_kernel_is_set_before_it_looks() -> None:
    """With `protectKernelDefaults` it does not start otherwise."""
    found = sysctls(tasks())

    wanted = {"vm.overcommit_memory": "1", "vm.panic_on_oom": "0", "kernel.panic": "10", "kernel.panic_on_oops": "1"}
    assert wanted.items() < found.items()


def test_parameters_of_bridges_wait_for_the_module_that_has_them() -> None:
    (parameters,) = (each for each in tasks() if isinstance(each, Sysctl))

    assert parameters.after == ("module protokube.conf",)


# names


def test_a_machine_that_the_setup_names_gets_the_name_everywhere() -> None:
    config = completed(cloud="metal")
    found = tasks_of(derived(config, node_name="rack-1-a", address="10.0.0.11").setup, DEBIAN_12)

    assert the_file(found, "/etc/hostname").content == b"rack-1-a\n"
    assert the_file(found, MACHINE_ENV).content == (
        b"KUBELET_MACHINE_FLAGS='--hostname-override=rack-1-a --node-ip=10.0.0.11'\n"
    )
    (command,) = (each for each in found if each.key == "command host name")
    assert isinstance(command, Command)
    assert command.run == ("hostname", "rack-1-a")
    record = json.loads(the_file(found, "/etc/protokube/machine.json").content)
    assert record == {
        "cluster": "dev.example.com", "group": "master-a", "nodeName": "rack-1-a", "role": "Master",
    }  # fmt: skip


def test_a_machine_that_its_cloud_names_keeps_its_name() -> None:
    found = tasks()

    assert not [each.key for each in found if "host" in each.key and "hosts" not in each.key]
    assert the_file(found, MACHINE_ENV).content == b"KUBELET_MACHINE_FLAGS=''\n"


def test_the_name_of_the_kernel_that_runs_here_is_not_that_of_an_image() -> None:
    setup = replace(a_setup("Node"), node_name="rack-1")

    found = tasks_of(setup, replace(DEBIAN_12, image=True, systemd=0))

    assert the_file(found, "/etc/hostname").content == b"rack-1\n"
    assert not [each for each in found if isinstance(each, Command)]


# files and hooks


def test_a_file_that_not_everybody_may_read_is_not_shown() -> None:
    files = [
        {"name": name, "path": f"/etc/{name}", "content": "x", "mode": mode}
        for name, mode in (("open", "0644"), ("group", "0640"), ("usual", None))
    ]

    found = {each.path: each.secret for each in tasks(fileAssets=files) if isinstance(each, File)}

    assert (found["/etc/open"], found["/etc/group"], found["/etc/usual"]) == (False, True, True)


def test_a_static_pod_of_the_user_is_a_file_like_any_other() -> None:
    files = [{"name": "pod", "path": "/etc/kubernetes/manifests/own.yaml", "content": "kind: Pod\n", "mode": "0644"}]

    assert the_file(tasks(fileAssets=files), "/etc/kubernetes/manifests/own.yaml").content == b"kind: Pod\n"


def test_a_oneshot_hook_is_done_once_in_each_boot() -> None:
    hooks: list[dict[str, Any]] = [
        {"name": "once", "manifest": "Type=oneshot\nExecStart=/bin/a"},
        {"name": "said", "manifest": "Type=oneshot\nRemainAfterExit=no\nExecStart=/bin/a"},
        {"name": "stays", "manifest": "ExecStart=/bin/a"},
        {"name": "raw", "useRawManifest": True, "manifest": "[Service]\nType = oneshot\nExecStart=/bin/a\n"},
    ]
    found = tasks(hooks=hooks)

    once, said, stays, raw = (the_unit(found, f"{each['name']}.service") for each in hooks)

    assert (once.content or "").count("RemainAfterExit=yes") == 1
    assert "RemainAfterExit=yes" not in (said.content or "") + (stays.content or "") + (raw.content or "")
    assert raw.drop_ins == {"10-protokube.conf": "[Service]\nRemainAfterExit=yes\n"}
    assert all((each.enabled, each.running) == (True, True) for each in (once, said, stays, raw))


def test_a_hook_that_is_off_stops_and_one_that_is_not_enabled_waits() -> None:
    found = tasks(hooks=[{"name": "off", "disabled": True}, {"name": "later", "enabled": False, "manifest": "A=b"}])

    off, later = (the_unit(found, f"{name}.service") for name in ("off", "later"))

    assert (off.content, off.enabled, off.running) == (None, False, False)
    assert (later.enabled, later.running) == (False, None)
    assert "[Install]" not in (later.content or "")


def test_a_hook_before_the_kubelet_is_done_before_the_agent_starts_it() -> None:
    raw = "[Unit]\nBefore=a.service kubelet.service\n[Service]\nExecStart=/bin/a\n"
    hooks = [
        {"name": "early", "before": ["kubelet.service"], "manifest": "ExecStart=/bin/a"},
        {"name": "raw", "useRawManifest": True, "manifest": raw},
        {"name": "late", "manifest": "ExecStart=/bin/a"},
        {"name": "off", "before": ["kubelet.service"], "disabled": True},
    ]
    after = the_unit(tasks(role="Master", hooks=hooks), "protokube-agent.service").after

    assert {each for each in after if each.startswith("unit")} == {
        "unit containerd.service", "unit kubelet.service", "unit early.service", "unit raw.service",
    }  # fmt: skip


def test_the_command_of_a_container_reaches_it_as_it_is_written() -> None:
    """systemd expands percent and dollar signs, and splits at spaces."""
    hook = {"name": "c", "execContainer": {"image": "busybox", "command": ["echo", "100%", "$HOME", 'say "hi" \\n']}}

    text = the_unit(tasks(hooks=[hook]), "c.service").content or ""

    assert text.count("ExecStart=") == 1
    assert ' c.service echo 100%% "$$HOME" "say \\"hi\\" \\\\n"\n' in text


# what belongs to the distribution


def test_keys_of_operators_are_a_file_of_their_own_where_sshd_reads_two() -> None:
    found = tasks(UBUNTU_2404, sshPublicKeys=[KEY])

    assert the_file(found, users.OURS).content.decode().splitlines()[1:] == [KEY]
    assert not [each for each in found if isinstance(each, File) and each.path == users.THEIRS]
    assert any(isinstance(each, Directory) and (each.path, each.mode) == ("/root/.ssh", 0o700) for each in found)
    assert not [each.key for each in tasks() if "ssh" in each.key]


def test_keys_of_operators_are_appended_where_sshd_reads_one_file() -> None:
    found = tasks(ROCKY_9, sshPublicKeys=[KEY])

    (command,) = (each for each in found if each.key == "command SSH keys of operators")
    assert isinstance(command, Command)
    assert command.run[-1] == command.check[-1] == KEY
    assert not [each for each in found if isinstance(each, File) and ".ssh" in each.path]


@pytest.mark.parametrize(
    ("facts", "policy", "package", "place"),
    [
        (DEBIAN_12, "automatic", "unattended-upgrades", 'Unattended-Upgrade "1"'),
        (DEBIAN_12, "external", "", 'Enable "0"'),
        (DEBIAN_12, None, "", ""), (ROCKY_9, "automatic", "dnf-automatic", ""), (ROCKY_9, "external", "", ""),
    ],
)  # fmt: skip
def test_the_system_updates_itself_as_the_spec_says(facts: Facts, policy: str, package: str, place: str) -> None:
    found = tasks(facts, **({"updatePolicy": policy} if policy else {}))
    own = [each for each in found if isinstance(each, File) and each.path.endswith("protokube-updates")]

    assert packages(found) & {"unattended-upgrades", "dnf-automatic"} == ({package} if package else set())
    assert [place in each.content.decode() for each in own] == ([True] if place else [])
    assert ("dnf-automatic-install.timer" in units(found)) is (package == "dnf-automatic")


@pytest.mark.parametrize("facts", MACHINES.values(), ids=MACHINES.keys())
def test_logs_are_rotated_hourly_by_the_distributions_own_timer(facts: Facts) -> None:
    timer = the_unit(tasks(facts), "logrotate.timer")

    assert timer.content is None
    assert (timer.enabled, timer.running) == (True, True)
    assert "OnCalendar=hourly" in "".join(timer.drop_ins.values())


def test_what_connects_to_the_outside_is_told_of_the_proxy() -> None:
    egress = {"httpProxy": {"host": "http://proxy/", "port": 3128}, "excludes": "a%b"}
    found = tasks(role="Master", egressProxy=egress)

    told = {each.name for each in found if isinstance(each, Unit) and "10-protokube-proxy.conf" in each.drop_ins}
    text = the_unit(found, "kubelet.service").drop_ins["10-protokube-proxy.conf"]

    assert told == {"containerd.service", "kubelet.service", "protokube-agent.service"}
    assert 'Environment="HTTPS_PROXY=http://proxy:3128"\n' in text
    assert 'Environment="NO_PROXY=a%%b,' in text
    assert b'Proxy "http://proxy:3128";' in the_file(found, "/etc/apt/apt.conf.d/90protokube-proxy").content
    assert not [each.key for each in tasks(ROCKY_9, egressProxy=egress) if "apt" in each.key]


# protokube itself


def test_the_unit_of_the_agent_is_that_of_the_debian_package_with_dbus_and_the_runtime_before_it() -> None:
    debian = (ROOT / "scripts" / "debian" / "protokube-agent.service").read_text()
    service = debian.partition("[Service]")[2].replace("/usr/bin/protokube", agent.PROGRAM)

    assert agent.TEXT.partition("[Service]")[2] == service
    assert "Wants=network-online.target dbus.socket\n" in agent.TEXT
    assert "containerd.service" in agent.TEXT.partition("[Service]")[0]


def test_the_launch_document_of_the_agent_is_what_it_reads() -> None:
    setup = a_setup()
    file = the_file(tasks_of(setup, DEBIAN_12), agent.DOCUMENT)

    assert LaunchDocument.from_tree(json.loads(file.content)).to_tree()["master"]["cluster"] == setup.cluster
    assert (file.mode, file.keep) == (0o600, False)
    assert the_unit(tasks_of(setup, DEBIAN_12), agent.UNIT).restart_on == (file.key,)


def test_an_inventory_that_the_agent_reads_comes_with_its_document_and_restarts_it_when_it_changes() -> None:
    inventory = FileSetup(path="/etc/protokube/inventory.yaml", content="bWFjaGluZXM6IFtd", mode=0o644)
    found = tasks_of(derived(completed(cloud="metal"), documents=[inventory]).setup, DEBIAN_12)

    file = the_file(found, inventory.path)

    assert (file.content, file.mode, file.keep) == (b"machines: []", 0o644, False)
    assert the_unit(found, agent.UNIT).restart_on == (f"file {agent.DOCUMENT}", file.key)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", ""), ("https://127.0.0.1:443", ""),
        ("https://127.0.0.1:3988", "api-proxy --name=api.internal.dev.example.com --port=443 --listen=127.0.0.1:3988"),
    ],
)  # fmt: skip
def test_a_kubelet_that_reaches_the_api_by_a_proxy_gets_one(url: str, expected: str) -> None:
    config = completed(cloud="metal")
    master = replace(from_config(config), kubelet_api=url)
    document = LaunchDocument(master=master, store="memory://x", infrastructure={"kind": "memory"}, units="systemd")
    found = tasks_of(derived(config, agent=document).setup, DEBIAN_12)

    text = "".join(each.content or "" for each in found if isinstance(each, Unit) and each.name == agent.PROXY_UNIT)

    assert (f"{agent.PROGRAM} {expected}" in text) if expected else not text
