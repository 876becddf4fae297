"""What `up` and `down` do with a context in the kubeconfig of who typed them, and that nothing of it fails them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from builders.kubeconfigs import a_kubeconfig, marks
from protokube.cli.shared.contexts import UserContext, merge_context, refresh_contexts, take_out_contexts
from protokube.cli.shared.progress import Progress
from protokube.local.base.paths import Paths
from protokube.local.contexts import record
from protokube.manifests.kubeconfig import by_content


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A local cluster with the kubeconfig that `up` writes."""
    for name in ("SUDO_UID", "SUDO_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    found = Paths.of("dev")
    found.create()
    found.client.mkdir()
    text = by_content("dev", "https://127.0.0.1:34567", "operator", ca=b"ca", certificate=b"certificate", key=b"key")
    (found.client / "kubeconfig").write_text(text)
    return found


def merge(paths: Paths, *, merging: bool = True, switch: bool = True) -> UserContext:
    return merge_context(Progress(), paths, merging=merging, switch=switch)


def test_up_merges_and_switches_and_down_restores(
    paths: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_bytes(a_kubeconfig("prod", current="prod"))

    assert merge(paths) == UserContext(name="protokube-dev", current=True)
    assert f"context protokube-dev in {tmp_path}/config" in capsys.readouterr().err
    assert yaml.safe_load((tmp_path / "config").read_text())["current-context"] == "protokube-dev"
    assert take_out_contexts(paths) == ["removed the context protokube-dev, prod is current again"]
    assert yaml.safe_load((tmp_path / "config").read_text()) == yaml.safe_load(a_kubeconfig("prod", current="prod"))
    assert take_out_contexts(paths) == []


def test_plain_kubectl_is_named_with_the_context_unless_that_is_current(paths: Paths, tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(a_kubeconfig("prod", current="prod"))

    assert merge(paths, merging=False).kubectl == ""
    assert not (paths.client / record.FILE).exists()
    assert merge(paths, switch=False).kubectl == "kubectl --context protokube-dev"
    assert merge(paths).kubectl == "kubectl"
    assert merge(paths, switch=False).kubectl == "kubectl"


def test_another_address_reaches_all_who_have_the_context_and_nobody_who_deleted_it(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a reboot, when another program has the former port."""
    files = [tmp_path / name for name in ("config", "second", "third")]
    for file in files:
        monkeypatch.setenv("KUBECONFIG", str(file))
        merge(paths)
    files[2].write_bytes(a_kubeconfig("prod", current="prod"))
    own = paths.client / "kubeconfig"
    own.write_text(own.read_text().replace("34567", "45678"))

    refresh_contexts(paths)

    assert ["https://127.0.0.1:45678" in file.read_text() for file in files] == [True, True, False]
    assert files[2].read_bytes() == a_kubeconfig("prod", current="prod")
    before = [file.stat().st_ino for file in files]
    refresh_contexts(paths)
    assert [file.stat().st_ino for file in files] == before


def test_down_finds_the_file_though_kubeconfig_names_another_one_by_then(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge(paths)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "second"))
    merge(paths)
    monkeypatch.delenv("KUBECONFIG")

    assert len(take_out_contexts(paths)) == 2
    assert marks((tmp_path / name).read_bytes() for name in ("config", "second")) == 0


@pytest.mark.parametrize("text", ["precious: [", "kind: Secret\n", "- a\n"])
def test_a_kubeconfig_that_cannot_be_read_is_one_warning_and_stays(
    paths: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "config").write_text(text)

    assert merge(paths) == UserContext()
    told = capsys.readouterr().err
    assert told.count("warning: no context was merged into your kubeconfig: ") == 1
    assert "hint: `protokube export kubeconfig -o FILE` writes one" in told
    assert (tmp_path / "config").read_text() == text
    assert take_out_contexts(paths) == []
    assert "its context is still in" in capsys.readouterr().err


def test_a_locked_file_is_a_warning_that_names_the_lock(
    paths: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.lock").touch()

    assert merge(paths) == UserContext()
    assert f"hint: if no kubectl is at work, `rm {tmp_path}/config.lock`" in capsys.readouterr().err
    assert not (tmp_path / "config").exists()


def test_a_file_of_a_clusters_own_is_not_merged_into(
    paths: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a shell that has sourced the environment that `up` wrote."""
    before = (paths.client / "kubeconfig").read_text()
    monkeypatch.setenv("KUBECONFIG", str(paths.client / "kubeconfig"))

    assert merge(paths) == UserContext()
    assert "KUBECONFIG names a file of a cluster's own" in capsys.readouterr().err
    assert (paths.client / "kubeconfig").read_text() == before


def test_a_record_that_cannot_be_read_does_not_fail_down(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    (paths.client / record.FILE).write_text("{")

    assert take_out_contexts(paths) == []
    assert "warning: dev: its contexts are still in kubeconfigs" in capsys.readouterr().err


def test_without_a_cluster_there_is_nothing_to_take_out(tmp_path: Path) -> None:
    assert take_out_contexts(Paths.at(tmp_path / "none")) == []


def test_a_user_whom_nobody_knows_is_a_warning(
    paths: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        monkeypatch.setenv("SUDO_UID", "3999999999")
        expected = "no home for user 3999999999"
    else:
        monkeypatch.setenv("KUBECONFIG", "::")
        expected = "KUBECONFIG names no file"

    assert merge(paths) == UserContext()
    assert expected in capsys.readouterr().err
