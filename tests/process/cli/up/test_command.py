"""What `up` decides before it touches the machine, and what it says at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.programs import all_of_etcd
from protokube.binaries.etcd import ETCD
from protokube.binaries.progress import Silent
from protokube.cli.shared.completing import complete_here
from protokube.cli.up.choosing import (
    find_etcd,
    read_spec,
)


def a_spec(folder: Path, fields: str) -> Path:
    file = folder / "spec.yaml"
    head = "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev.example.com}\n"
    file.write_text(f"{head}spec: {{{fields}}}\n")
    return file


def test_an_etcd_that_the_user_names_and_is_too_old_runs_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ETCD.chosen, str(all_of_etcd(tmp_path / "own", "3.4.23")))
    spec, _ = read_spec(a_spec(tmp_path, "cloud: local, kubernetesVersion: 1.36.4"))

    found = find_etcd(spec, None, "1.36.4", Silent())
    config = complete_here(spec, found.version, "1.36.4")

    assert found.version == "3.4.23"
    assert "etcd 3.4.23 does not answer progress requests" in config.warnings[0].message
    assert complete_here(spec, found.version, "").warnings == ()
