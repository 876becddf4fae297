"""Which Kubernetes is found: the user's folder, then the cache, and never something half done."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.mirror import a_folder
from protokube.binaries.kubernetes import CONTROL_PLANE, KUBERNETES, find
from protokube.binaries.product import COMPLETE
from protokube.errors import Refused


def kept(cache: Path, name: str) -> Path:
    folder = a_folder(cache / "kubernetes" / name, name)
    (folder / COMPLETE).touch()
    return folder


def test_the_folder_the_user_names_comes_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path, "1.34.1")
    own = a_folder(tmp_path / "own", "1.20.2", CONTROL_PLANE)
    monkeypatch.setenv(KUBERNETES.chosen, str(own))

    found = find(None, tmp_path)

    assert found
    assert (found.version, found.folder, set(found.programs)) == ("1.20.2", own, set(CONTROL_PLANE))


def test_a_folder_named_by_the_user_that_is_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, "1.34.1")
    monkeypatch.setenv(KUBERNETES.chosen, str(a_folder(tmp_path / "own", "1.20.2")))

    with pytest.raises(Refused, match=r"holds Kubernetes 1\.20\.2") as refused:
        find("1.34.1", tmp_path)
    assert KUBERNETES.chosen in refused.value.hint


# --- what programs say


def test_a_program_says_its_version(tmp_path: Path) -> None:
    assert KUBERNETES.version(a_folder(tmp_path) / "kubelet") == "1.34.1"


def test_kubectl_is_asked_in_its_own_way(tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\n[ "$*" = "version --client" ] && echo "Client Version: v1.34.1"\n')
    kubectl.chmod(0o755)

    assert KUBERNETES.version(kubectl) == "1.34.1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("#!/bin/sh\necho what\n", "does not say its version"),
        ("#!/bin/sh\necho v1.34.1\nexit 1\n", "does not say its version"),
        ("\x7fELF of another kind of machine", "does not run"),
    ],
)
def test_a_program_that_is_none_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "kubelet").write_text(content)
    (tmp_path / "kubelet").chmod(0o755)

    with pytest.raises(Refused, match=message):
        KUBERNETES.version(tmp_path / "kubelet")
