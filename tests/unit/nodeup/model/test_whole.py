"""Whatever the spec and the machine: a list of tasks that can be carried out, whose files can be read."""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders.config import EXAMPLES, a_group, completed
from builders.examples import examples
from builders.setups import DEBIAN_12, EVERYTHING, MACHINES, ROCKY_9, a_setup, config_of, derived, the_unit
from protokube.config.check.ourplaces import OF_NODEUP, our_places, why_not
from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.listing import listing
from protokube.nodeup.model import checks, cni
from protokube.nodeup.model.checks import Unfit
from protokube.nodeup.model.whole import tasks_of
from protokube.nodeup.values import Asset, File, Image, Installed, Link, Mount, Packages, Task, Unit

HIDDEN = "correct horse battery staple"
SECTION, SETTING = re.compile(r"\[[A-Z][A-Za-z]+\]"), re.compile(r"[A-Z][A-Za-z0-9]+=.*")

WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=8)
PATHS = st.lists(WORDS, min_size=1, max_size=3).map(lambda parts: f"/opt/own/{'-'.join(parts)}")
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=("Cc", "Cs")), max_size=30)
HOOKS = st.fixed_dictionaries(
    {"manifest": st.sampled_from(["Type=oneshot\nExecStart=/bin/true\n", "ExecStart=/bin/sleep 1"])},
    optional={
        "before": st.sampled_from([["kubelet.service"], []]),
        "requires": st.sampled_from([["network.target"], []]),
        "enabled": st.booleans(),
        "disabled": st.booleans(),
    },
)
CONTAINERS = st.fixed_dictionaries(
    {"execContainer": st.fixed_dictionaries({"image": WORDS, "command": st.lists(TEXTS, max_size=3)})}
)
RUNTIMES = st.fixed_dictionaries(
    {},
    optional={
        "logLevel": st.sampled_from(["debug", "warn"]),
        "root": st.just("/data/containerd"),
        "selinuxEnabled": st.booleans(),
        "skipInstall": st.booleans(),
        "version": st.sampled_from(["1.7.24", "2.0.3", "2.1.9"]),
        "registryMirrors": st.dictionaries(
            st.sampled_from(["docker.io", "*", "x:5000"]), st.just(["https://m.example"])
        ),
        "configAdditions": st.dictionaries(
            st.sampled_from(['plugins."a.b".c', "debug.uid", "x"]), st.one_of(st.integers(0, 9), st.booleans(), TEXTS)
        ),
    },
)
SPECS = st.fixed_dictionaries(
    {"kubernetesVersion": st.sampled_from(["1.20.15", "1.22.17", "1.26.15", "1.31.14", "1.36.4"])},
    optional={
        "containerd": RUNTIMES,
        "fileAssets": st.lists(PATHS, unique=True, max_size=2).map(
            lambda paths: [{"name": each, "path": each, "content": HIDDEN} for each in paths]
        ),
        "hooks": st.lists(st.one_of(HOOKS, CONTAINERS), max_size=3),
        "packages": st.lists(st.sampled_from(["jq", "chrony", "xfsprogs", "nfs-common", "unattended-upgrades"])),
        "sysctlParameters": st.lists(st.sampled_from(["vm.swappiness=1", "net.ipv4.ip_forward = 1"])),
        "updatePolicy": st.sampled_from(["automatic", "external"]),
        "ntp": st.fixed_dictionaries({"managed": st.booleans()}),
        "egressProxy": st.just({"httpProxy": {"host": "proxy.example.com", "port": 1}}),
        "sshPublicKeys": st.just(["ssh-ed25519 AAAA me"]),
        "kubelet": st.fixed_dictionaries({"cgroupDriver": st.sampled_from(["systemd", "cgroupfs"])}),
    },
)
FACTS = st.builds(
    replace,
    st.sampled_from(sorted(MACHINES)).map(MACHINES.__getitem__),
    container=st.booleans(),
    processor=st.sampled_from(["x86_64", "aarch64"]),
    clock_error=st.sampled_from([None, 0.1]),
    time_service=st.sampled_from(["", "chrony.service"]),
    image=st.booleans(),
)


def in_order(tasks: tuple[Task, ...]) -> list[str]:
    """As `after` and `restart_on` say; an error if they name what is not there, or go round in a circle."""
    needs: dict[str, set[str]] = {}
    for each in tasks:
        needs[each.key] = {*each.after, *(each.restart_on if isinstance(each, Unit) else ())}
        if isinstance(each, Installed | Image):
            needs[each.key].add(f"asset {each.asset}")
    assert len(needs) == len(tasks), "two tasks of one key"
    assert not {key for found in needs.values() for key in found} - needs.keys()
    return list(TopologicalSorter(needs).static_order())


def check_paths(tasks: tuple[Task, ...]) -> None:
    for each in tasks:
        for name in ("path", "target", "device"):
            path = getattr(each, name, "/")
            assert path.startswith("/"), each.key
            assert posixpath.normpath(path) == path, each.key
        if isinstance(each, File):
            assert 0 <= each.mode <= 0o777


def check_texts(tasks: tuple[Task, ...]) -> None:
    for each in tasks:
        if isinstance(each, Unit):
            for text in (each.content or "[Unit]\n", *each.drop_ins.values()):
                check_unit(text)
        if isinstance(each, File) and not each.secret:
            assert each.content.endswith(b"\n"), each.key
            text = each.content.decode()
            match posixpath.splitext(each.path)[1]:
                case ".toml":
                    assert tomllib.loads(text)
                case ".json":
                    assert json.loads(text)
                case ".yaml":
                    assert yaml.safe_load(text)


def check_unit(text: str) -> None:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert SECTION.fullmatch(lines[0]), text
    for line in lines:
        assert SECTION.fullmatch(line) or SETTING.fullmatch(line), text


def check(setup: MachineSetup, facts: Facts) -> tuple[Task, ...]:
    tasks = tasks_of(setup, facts)
    in_order(tasks)
    check_paths(tasks)
    check_texts(tasks)
    assert tasks_of(setup, facts) == tasks
    assert listing(tasks_of(setup, facts)) == listing(tasks)
    return tasks


@pytest.mark.parametrize("facts", MACHINES.values(), ids=MACHINES.keys())
@pytest.mark.parametrize("path", [*EXAMPLES, EVERYTHING], ids=lambda each: each.stem)
def test_every_example_becomes_machines_of_every_distribution(path: Any, facts: Facts) -> None:
    config = config_of(path)
    for name, group in config.groups.items():
        if group["role"] in ("Master", "Node"):
            own = derived(config, group=name).setup
            facts = replace(facts, available=(*facts.available, ("containerd", "1.7.24"))) if own.runtime.nri else facts
            check(own, facts)


@given(spec=SPECS, role=st.sampled_from(["Master", "Node"]), facts=FACTS)
@examples(80)
def test_whatever_the_spec_and_the_machine_the_tasks_can_be_carried_out(
    spec: dict[str, Any], role: str, facts: Facts
) -> None:
    tasks = check(a_setup(role, **spec), facts)

    assert HIDDEN not in listing(tasks)
    assert HIDDEN not in repr(tasks)


@given(spec=SPECS, facts=FACTS)
@examples(20)
def test_the_order_in_which_a_spec_lists_packages_and_files_changes_no_file(spec: dict[str, Any], facts: Facts) -> None:
    turned = spec | {name: list(reversed(spec[name])) for name in ("fileAssets",) if name in spec}

    both = [tasks_of(a_setup("Node", **each), facts) for each in (spec, turned)]

    assert [each for each in both[0] if isinstance(each, File)] == [each for each in both[1] if isinstance(each, File)]


def test_what_downloads_waits_for_the_clock_and_packages_for_the_proxy() -> None:
    tasks = tasks_of(a_setup(egressProxy={"httpProxy": {"host": "proxy"}}), replace(DEBIAN_12, clock_error=-3600.0))
    clock = {"unit systemd-timesyncd.service", "command the clock is synchronized"}

    for each in tasks:
        if isinstance(each, Asset) or (isinstance(each, Packages) and "systemd-timesyncd" not in each.names):
            assert clock < set(each.after), each.key
        if isinstance(each, Packages):
            assert "file /etc/apt/apt.conf.d/90protokube-proxy" in each.after


def test_the_agent_starts_after_everything_that_the_kubelet_needs() -> None:
    hook = {"name": "early", "before": ["kubelet.service"], "manifest": "ExecStart=/bin/true"}
    order = in_order(tasks_of(a_setup(hooks=[hook]), DEBIAN_12))
    agent = order.index("unit protokube-agent.service")

    before = ("unit containerd.service", "unit kubelet.service", "installed /opt/cni/bin", "unit early.service")
    assert all(order.index(each) < agent for each in before)


def test_the_kubelet_is_neither_enabled_nor_started_on_any_machine() -> None:
    for role in ("Master", "Node"):
        unit = the_unit(tasks_of(a_setup(role), DEBIAN_12), "kubelet.service")

        assert (unit.enabled, unit.running) == (None, None)
        assert unit.content is not None
        assert "[Install]" not in unit.content


def test_nodes_have_no_agent_and_no_launch_document_of_one() -> None:
    tasks = tasks_of(a_setup("Node"), DEBIAN_12)

    assert not [each.key for each in tasks if "agent" in each.key]


def test_what_the_agent_keeps_on_masters_is_written_only_where_it_is_missing() -> None:
    files = [{"name": "motd", "path": "/etc/motd", "content": "x"}]
    kept = {
        role: {each.path for each in tasks_of(a_setup(role, fileAssets=files), DEBIAN_12)
               if isinstance(each, File) and each.keep}
        for role in ("Master", "Node")
    }  # fmt: skip

    assert kept == {
        "Master": {"/etc/default/kubelet", "/etc/kubernetes/config/kubelet.yaml", "/etc/motd"},
        "Node": set(),
    }


def test_a_file_that_only_some_machines_get_from_protokube_is_refused_there_by_its_path() -> None:
    files = [
        {"name": "a", "path": "/root/.ssh/authorized_keys2", "content": "x"},
        {"name": "b", "path": "/etc/systemd/system/own.service", "content": "x"},
    ]
    hooks = [{"name": "own", "manifest": "ExecStart=/bin/a"}, {"name": "containerd", "disabled": True}]
    setup = a_setup("Node", fileAssets=files, hooks=hooks, sshPublicKeys=["ssh-ed25519 AAAA me"])
    with pytest.raises(Unfit) as refused:
        tasks_of(setup, DEBIAN_12)

    assert [each.path for each in refused.value.problems] == [
        "/etc/systemd/system/own.service", "/root/.ssh/authorized_keys2", "unit containerd.service",
    ]  # fmt: skip


def test_what_every_machine_gets_is_refused_in_a_spec_already() -> None:
    """A plan says so, not the machine."""
    written = set()
    for role in ("Master", "Node"):
        for facts in (DEBIAN_12, ROCKY_9):
            written |= {place for each in tasks_of(a_setup(role), facts) for place in checks.places(each)}
    paths = {each for each in written if each.startswith("/")} - {"/etc/protokube/agent.json"}
    config = completed(cloud="metal")
    ours = our_places(config.cluster, config.rendered)

    free = {each for each in paths if why_not(each, ours) is None}

    assert free == {f"/opt/cni/bin/{name}" for name in cni.PLUGINS} & paths
    assert set(OF_NODEUP) - paths == {
        "/etc/systemd/system/protokube-api-proxy.service", "/usr/local/bin/protokube",
    }  # fmt: skip


def test_disks_are_mounted_before_what_is_kept_on_them() -> None:
    mounts = [{"device": "/dev/sdb", "path": "/var/lib/kubelet"}]
    tasks = tasks_of(a_setup("Node", a_group(volumeMounts=mounts)), DEBIAN_12)
    order = in_order(tasks)

    (mount,) = (each for each in tasks if isinstance(each, Mount))
    assert (mount.device, mount.format) == ("/dev/sdb", True)
    assert order.index(mount.key) < order.index("directory /var/lib/kubelet")
    assert order.index(mount.key) < order.index("unit containerd.service")


def test_links_and_programs_come_from_where_a_task_brings_them() -> None:
    setup = derived(completed(cloud="metal", nodes=1), "Node").setup
    without = replace(setup, assets=tuple(each for each in setup.assets if each.name != "cni-plugins"))

    links = [each for each in tasks_of(without, DEBIAN_12) if isinstance(each, Link)]

    assert {each.after for each in links} == {("packages of a node",)}
    assert {each.target.rpartition("/")[0] for each in links} == {"/usr/lib/cni"}
