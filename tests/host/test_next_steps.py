"""What `up` prints at its end is typed as it is printed: every command, with two clusters and with one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from builders.command import NOWHERE, Answer, environment
from clusters.real import RealCluster
from fakes.name_servers import debian_environment, debian_program
from host.debian import unpacked
from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES

SCRIPT = Path(sys.executable).with_name("protokube")
"""What a user of a virtual environment calls by its path."""
SECONDS = 180.0


class Typed:
    """A shell whose PATH has no protokube, and a machine that has nothing but an etcd."""

    def __init__(self, state: Path, folder: Path) -> None:
        etcd, tools, cache = (folder / name for name in ("etcd", "tools", "cache"))
        for each in (etcd, tools, cache):
            each.mkdir()
        for package, name in (("etcd-server", "etcd"), ("etcd-client", "etcdctl")):
            shutil.copy(unpacked(package) / "usr/bin" / name, etcd)
        dig, libraries = debian_program("bind9-dnsutils", "usr/bin/dig"), debian_environment()["LD_LIBRARY_PATH"]
        (tools / "dig").write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {dig} "$@"\n')
        (tools / "dig").chmod(0o755)
        others = [each for each in os.environ["PATH"].split(":") if not (Path(each) / "protokube").exists()]
        self.env = environment(
            PATH=":".join([str(tools), *others, "/usr/sbin", "/sbin"]), PROTOKUBE_STATE=str(state),
            PROTOKUBE_CACHE=str(cache), **{ETCD.chosen: str(etcd), KUBERNETES.chosen: ""},
        )  # fmt: skip

    def type(self, command: str) -> Answer:
        ran = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=SECONDS, env=self.env, cwd="/"
        )
        return Answer(ran.returncode, ran.stdout, ran.stderr)

    def up(self, *words: str) -> Answer:
        said = self.type(" ".join([str(SCRIPT), "up", *words]))
        assert said.code == 0, said.err
        return said

    def type_all(self, commands: list[str]) -> list[str]:
        said = [(command, self.type(command)) for command in commands]
        assert [f"{command}: {each.err}" for command, each in said if each.code] == []
        return [each.out for _, each in said]


def commands_of(said: Answer) -> list[str]:
    """The lines that are indented as commands, below «What to type next»."""
    _, _, rest = said.out.partition("What to type next:")
    part, _, _ = rest.partition("It runs without Kubernetes.")
    return [line.strip() for line in part.splitlines() if line.startswith("  ") and not line.startswith("   ")]


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Typed]:
    with tempfile.TemporaryDirectory(prefix="pkc-", dir="/tmp") as state, ExitStack() as stack:
        for name in ("one", "two"):  # taken down whatever happens
            stack.enter_context(RealCluster(name, Path(state)))
        yield Typed(Path(state), tmp_path)


def test_every_command_that_up_prints_works_with_two_clusters_and_with_one(typed: Typed) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, _ = pool.map(lambda words: typed.up(*words), [
            ("--cluster", "one"), ("--cluster", "two", "--masters", "1", "--kubernetes", "none"),
        ])  # fmt: skip
    (missing,) = [line for line in first.err.splitlines() if "no Kubernetes: " in line]
    assert f"releases of Kubernetes cannot be downloaded ({NOWHERE}: " in missing
    assert f"  {SCRIPT} up --cluster one --kubernetes build\n      built from Go modules, in about " in first.out

    again = typed.up("--cluster", "one")
    both = commands_of(again)
    said = typed.type_all(both)

    assert [f"{SCRIPT} {words} --cluster one" for words in ("status", "drill kill-master", "down")] == [
        each for each in both if each.startswith(str(SCRIPT))
    ]
    assert len(both) == 6
    assert [words in text for words, text in zip(("main/a", "", "OK", "10.", "", "one"), said, strict=True)] == [
        True
    ] * 6
    assert f"{SCRIPT} up --cluster one --kubernetes build\n" in again.out, "no release can be reached this time either"

    last = commands_of(typed.up("--cluster", "two", "--kubernetes", "none"))
    typed.type_all(last)

    assert [f"{SCRIPT} {words}" for words in ("status", "drill kill-master", "down")] == [
        each for each in last if each.startswith(str(SCRIPT))
    ]
    assert "there is no local cluster" in typed.type(f"{SCRIPT} status").err


def test_a_kubelet_that_cannot_be_had_is_refused_before_anything_is_written(typed: Typed) -> None:
    asked = typed.type(f"{SCRIPT} up --cluster one --kubelet")
    declined = typed.type(f"{SCRIPT} up --cluster one --kubelet --kubernetes none")

    assert (asked.code, declined.code) == (3, 4)
    assert "error: releases of Kubernetes cannot be downloaded" in asked.err
    assert "error: there is no kubelet in a cluster without Kubernetes" in declined.err
    assert list(Path(typed.env["PROTOKUBE_STATE"]).iterdir()) == []
