"""What `up` prints at its end: commands as the shell takes them in which it was typed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from protokube.binaries.product import Release
from protokube.cli.up.kubernetes import Kubernetes
from protokube.cli.up.next_steps import Shell, Step, adding_kubernetes, called_as, kubectl_of, next_steps, text

RESULT: dict[str, Any] = {
    "cluster": "laptop",
    "seconds": 4.2,
    "env": {"KUBECONFIG": "/state/my files/kubeconfig"},
    "envFile": "/state/env",
    "etcdctl": "/bin/etcdctl",
    "dns": "127.0.0.1:5353",
    "kubectl": "/opt/kubectl",
    "kubelet": True,
    "kubernetesMissing": None,
}
PLAIN = Shell(protokube="protokube")
SUDO = Shell(protokube="./pk", sudo=True, variables={"PROTOKUBE_STATE": "/my state"})


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "on-the-path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def a_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def commands(shell: Shell = PLAIN, *, several: bool = False, **more: Any) -> list[str]:
    return [each.command for each in next_steps({**RESULT, **more}, "etcd-a.internal.laptop", shell, several=several)]


def test_with_kubernetes_the_first_look_is_at_its_nodes() -> None:
    assert commands()[:2] == [
        "protokube status",
        "KUBECONFIG='/state/my files/kubeconfig' /opt/kubectl get nodes",
    ]
    assert "get --raw '/readyz?verbose'" in commands(kubelet=False)[1]
    assert not [each for each in commands(kubectl=None) if "kubectl" in each]


def test_a_kubectl_on_the_path_is_named_by_its_name(path: Path) -> None:
    a_program(path / "kubectl")
    assert commands()[1].endswith(" kubectl get nodes")


def test_a_context_in_the_kubeconfig_of_the_user_needs_no_variable_and_no_sudo() -> None:
    assert commands(SUDO, context="laptop", contextIsCurrent=True)[1] == "/opt/kubectl get nodes"
    assert commands(context="laptop", contextIsCurrent=False)[1] == "/opt/kubectl --context laptop get nodes"


def test_dig_is_printed_only_where_it_is(path: Path) -> None:
    assert not [each for each in commands() if each.startswith("dig")]
    a_program(path / "dig")
    assert "dig +short @127.0.0.1 -p 5353 etcd-a.internal.laptop" in commands()


def test_with_several_clusters_each_command_says_which() -> None:
    ours = [each for each in commands(several=True) if each.startswith("protokube ")]
    assert len(ours) == 3
    assert all(each.endswith(" --cluster laptop") for each in ours)


def test_by_sudo_each_command_that_reads_what_is_roots_is_by_sudo_too_with_its_variables() -> None:
    for each in commands(SUDO):
        assert shlex.split(each)[0] == "sudo"
    assert commands(SUDO)[0] == "sudo env PROTOKUBE_STATE='/my state' ./pk status"
    script = ". /state/env && /bin/etcdctl endpoint status -w table"
    assert shlex.split(commands(SUDO)[2]) == ["sudo", "sh", "-c", script]
    assert shlex.split(commands()[2]) == ["sh", "-c", script], "variables do not stay in the shell of the user"


def test_no_command_has_a_comment_which_not_every_shell_takes() -> None:
    assert not [each for each in commands() if "#" in each]


def test_our_command_is_named_by_its_name_only_if_the_path_finds_this_very_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = a_program(tmp_path / "my venv" / "bin" / "protokube")
    assert called_as(str(elsewhere)) == f"'{elsewhere}'"
    a_program(path / "protokube")
    assert called_as(str(elsewhere)) == f"'{elsewhere}'", "another one of this name"
    assert called_as(str(path / "protokube")) == "protokube"
    (path / "protokube").unlink()
    (path / "protokube").symlink_to(elsewhere)
    assert called_as(str(elsewhere)) == "protokube"
    monkeypatch.chdir(tmp_path)
    a_program(tmp_path / "dist" / "protokube.pyz")
    assert called_as("dist/protokube.pyz") == "dist/protokube.pyz"


def test_a_file_that_python_was_given_and_nobody_can_execute_is_given_to_python_again(tmp_path: Path) -> None:
    (tmp_path / "protokube.pyz").touch(mode=0o644)
    assert called_as(str(tmp_path / "protokube.pyz")) == f"{sys.executable} {tmp_path}/protokube.pyz"
    assert called_as("/lib/protokube/__main__.py") == f"{sys.executable} -m protokube"


def test_how_kubernetes_is_added_goes_by_what_can_be_had(tmp_path: Path) -> None:
    def added(release: Kubernetes, default: str = "laptop", *, alone: bool = False) -> Step:
        return adding_kubernetes(RESULT, PLAIN, default, release, minutes=10, alone=alone)

    build = added(Kubernetes(missing="it cannot be reached"))
    assert build.command == "protokube up --kubernetes build"
    assert "about 10 minutes" in build.does
    assert "Go" in build.does
    here = Kubernetes(version="1.34.1", here=Release(version="1.34.1", folder=tmp_path, programs={}))
    assert added(here).command == "protokube up --kubernetes 1.34.1"
    official = Kubernetes(version="1.36.9")
    assert added(official).command == "protokube up --kubernetes 1.36.9"
    assert added(official, "other").command == "protokube up --cluster laptop --kubernetes 1.36.9"


def test_the_only_master_gets_kubernetes_by_a_command_that_accepts_its_replacement() -> None:
    """`up` refuses to replace it otherwise, so the command would not work as it is printed."""
    release = Kubernetes(missing="it cannot be reached")
    step = adding_kubernetes(RESULT, PLAIN, "laptop", release, minutes=10, alone=True)

    assert step.command == "protokube up --kubernetes build --yes"
    assert step.does.endswith("; its only master answers nothing for half a minute or so")


def test_the_text_has_each_command_on_a_line_of_its_own_and_what_it_does_below() -> None:
    lines = text(RESULT, [Step("one", "does this")], Step("two", "does that")).splitlines()
    assert lines == [
        "",
        "laptop is up, after 4.2 s. What to type next:",
        "",
        "  one",
        "      does this",
        "",
        "It runs without Kubernetes. To add it to this cluster:",
        "",
        "  two",
        "      does that",
    ]


def test_a_folder_without_kubectl_has_none() -> None:
    assert kubectl_of(None) is None
