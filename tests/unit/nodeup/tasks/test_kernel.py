"""Kernel parameters, modules and commands with a check, where a kernel runs and where none does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from builders.nodeup import DEBIAN, Booted, a_root, silent
from protokube.errors import Refused
from protokube.nodeup.catalog import KINDS
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.values import Command, Module, Sysctl, Task

FORWARD = Sysctl(file="99-k8s.conf", values={"net.ipv4.ip_forward": "1", "net.ipv4.tcp_rmem": "4096 87380 16777216"})
BRIDGE = Module(file="k8s.conf", names=("br_netfilter", "nf-conntrack"))


@dataclass
class Programs:
    """Implements Commands: what each program does is said by the test."""

    root: Path
    codes: dict[str, int] = field(default_factory=dict)
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(
        self, words: Sequence[str], *, seconds: float = 0, environment: dict[str, str] | None = None,
        say: Say | None = None,
    ) -> Ran:  # fmt: skip
        self.ran.append(tuple(words))
        if words[0] == "modprobe" and self.codes.get(words[-1], 0) == 0:
            (self.root / "sys/module" / words[-1].replace("-", "_")).mkdir(parents=True)
        return Ran(self.codes.get(words[-1], 0), f"{words[-1]}: first\n\nlast line\n")


@pytest.fixture
def booted(tmp_path: Path) -> Booted:
    root = a_root(tmp_path).root
    for name, value in (("ipv4/ip_forward", "0"), ("ipv4/tcp_rmem", "4096\t87380\t16777216")):
        path = root / "proc/sys/net" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    (root / "sys/module/nf_conntrack").mkdir(parents=True)
    return Booted(facts=DEBIAN, run=Programs(root), root=root)


def programs(machine: Machine) -> Programs:
    assert isinstance(machine.run, Programs)
    return machine.run


def apply(task: Task, machine: Machine) -> list[str]:
    kind = KINDS[type(task)]
    changes = kind.look(task, machine)
    kind.apply(task, changes, machine, silent)
    assert not kind.look(task, machine)
    return [str(change) for change in changes]


def test_parameters_are_written_for_each_boot_and_put_in_force_however_their_values_are_spaced(booted: Booted) -> None:
    assert apply(FORWARD, booted) == ["file: missing -> 64 bytes", "net.ipv4.ip_forward: 0 -> 1"]

    assert (booted.root / "etc/sysctl.d/99-k8s.conf").read_text() == (
        "net.ipv4.ip_forward = 1\nnet.ipv4.tcp_rmem = 4096 87380 16777216\n"
    )
    assert (booted.root / "proc/sys/net/ipv4/ip_forward").read_text() == "1\n"


def test_names_with_dots_in_them_are_read_as_sysctl_reads_them(booted: Booted) -> None:
    for name in ("net/ipv4/conf/eth0.100/rp_filter", "net.ipv4.conf.eth0/100.rp_filter"):
        path = booted.root / "proc/sys/net/ipv4/conf/eth0.100/rp_filter"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("0\n")

        assert apply(Sysctl(file="x.conf", values={name: "1"}), booted)[-1] == f"{name}: 0 -> 1"


def test_a_parameter_that_this_kernel_has_not_is_refused_and_the_file_is_there(booted: Booted) -> None:
    task = Sysctl(file="x.conf", values={"net.bridge.none": "1"})
    with pytest.raises(Refused, match=r"this kernel has no parameter net\.bridge\.none"):
        KINDS[Sysctl].apply(task, KINDS[Sysctl].look(task, booted), booted, silent)

    assert (booted.root / "etc/sysctl.d/x.conf").exists()
    assert not (booted.root / "proc/sys/net/bridge").exists()


def test_in_the_root_of_an_image_only_files_are_written(tmp_path: Path) -> None:
    image = a_root(tmp_path)

    assert apply(FORWARD, image) == ["file: missing -> 64 bytes"]
    assert apply(BRIDGE, image) == ["file: missing -> 26 bytes"]
    assert (tmp_path / "etc/modules-load.d/k8s.conf").read_text() == "br_netfilter\nnf-conntrack\n"


def test_a_module_that_is_not_there_is_loaded(booted: Booted) -> None:
    assert apply(BRIDGE, booted) == ["file: missing -> 26 bytes", "br_netfilter: not loaded -> loaded"]
    assert programs(booted).ran == [("modprobe", "--", "br_netfilter")]


def test_a_module_that_is_part_of_the_kernel_is_loaded(booted: Booted) -> None:
    built_in = booted.root / "lib/modules" / os.uname().release / "modules.builtin"
    built_in.parent.mkdir(parents=True)
    built_in.write_text("kernel/net/bridge/br-netfilter.ko\nkernel/fs/x.ko.xz\n")

    assert apply(BRIDGE, booted) == ["file: missing -> 26 bytes"]
    assert apply(Module(file="x.conf", names=("x",)), booted) == ["file: missing -> 2 bytes"]


def test_a_module_that_cannot_be_loaded_is_refused_with_the_reason(booted: Booted) -> None:
    programs(booted).codes["br_netfilter"] = 1

    with pytest.raises(Refused, match="the kernel module br_netfilter cannot be loaded") as caught:
        apply(BRIDGE, booted)
    assert caught.value.saw == "br_netfilter: first; last line"


def test_in_a_container_the_host_must_load_modules_and_the_file_is_written_all_the_same(booted: Booted) -> None:
    container = replace(booted, facts=replace(DEBIAN, container=True))

    for act in (lambda: apply(BRIDGE, container), lambda: KINDS[Module].look(BRIDGE, container)):
        with pytest.raises(Refused, match="cannot load br_netfilter; this is a container, so its host must") as caught:
            act()
        assert caught.value.hint == "there: `modprobe --all br_netfilter`"
    assert (booted.root / "etc/modules-load.d/k8s.conf").exists()
    assert programs(booted).ran == []


SYNC = Command(name="sync", check=("is-synced", "check"), run=("sync-now", "run"))


def test_a_command_is_run_only_if_its_check_fails(booted: Booted) -> None:
    assert not KINDS[Command].look(SYNC, booted)

    programs(booted).codes["check"] = 3
    changes = KINDS[Command].look(SYNC, booted)
    assert [str(change) for change in changes] == ["check: ends with 3 -> ends with 0"]
    KINDS[Command].apply(SYNC, changes, booted, silent)
    assert programs(booted).ran[-1] == ("sync-now", "run")


def test_a_command_that_fails_is_told_with_the_end_of_what_it_wrote(booted: Booted) -> None:
    programs(booted).codes["run"] = 7

    with pytest.raises(Refused, match="`sync-now` of the command sync failed with 7") as caught:
        KINDS[Command].apply(SYNC, (), booted, silent)
    assert caught.value.saw == "run: first; last line"
