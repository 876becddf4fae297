"""`protokube nodeup setup`: what a machine is told, from a spec, with releases on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.assets import sha256
from builders.command import Call
from builders.setups import DEBIAN_12
from fakes import releases
from fakes.assets import serving
from fakes.releases import content
from protokube.config.complete import Config, complete
from protokube.errors import ExitCode
from protokube.launch.published import image_names
from protokube.launch.setup import from_tree
from protokube.nodeup.model.whole import tasks_of
from protokube.spec.parse import read

SPEC = """
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata:
  name: racks.example.com
spec:
  cloud: metal
  zones: [rack-1]
  masters: 1
  nodes: 2
  kubernetesVersion: 1.34.1
"""
UNRELEASED = ("pause", "coredns")


@pytest.fixture(scope="module")
def config() -> Config:
    return complete(read([("spec.yaml", SPEC)]))


@pytest.fixture(scope="module")
def release(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """Where the releases are, and the digest of each asset."""
    folder = tmp_path_factory.mktemp("releases")
    files = releases.put_all(folder, config)
    with serving(folder) as url:
        yield url, {each.published.asset: sha256(content(each)) for each in files}


@pytest.fixture
def words(tmp_path: Path, config: Config, release: tuple[str, dict[str, str]]) -> list[str]:
    (tmp_path / "spec.yaml").write_text(SPEC)
    found = ["nodeup", "setup", str(tmp_path / "spec.yaml"), "--cache", str(tmp_path / "cache")]
    for component, name in image_names(config, master=False).items():
        if component in UNRELEASED:
            (tmp_path / f"{component}.tar").write_bytes(component.encode())
            found += ["--image", f"{name}={tmp_path}/{component}.tar"]
    return [*found, "--processor", "x86_64", *releases.options(release[0])]


def test_a_node_is_told_its_name_and_what_it_downloads_and_can_be_made_from_it(
    call: Call, words: list[str], release: tuple[str, dict[str, str]]
) -> None:
    answer = call(*words, "--name", "worker-1", "--address", "10.0.1.21")

    assert answer.code == ExitCode.OK, answer.err
    setup = from_tree(json.loads(answer.out))
    assert (setup.role, setup.node_name, setup.address, setup.agent) == ("Node", "worker-1", "10.0.1.21", None)
    digests = {each.name: each.sha256 for each in setup.assets}
    assert {name: digests[name] for name in digests.keys() & release[1].keys()} == {
        name: release[1][name] for name in digests.keys() & release[1].keys()
    }
    assert {"kubelet", "containerd", "runc", "cni-plugins", "pause.tar", "kube-proxy.tar"} <= digests.keys()
    keys = {task.key for task in tasks_of(setup, DEBIAN_12)}
    assert {"asset kubelet", "installed /usr/local/bin/kubelet", "unit kubelet.service"} <= keys


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--group", "noodes"), ["error: there is no instance group noodes", "hint: did you mean `nodes`?"]),
        (("--group", "masters"), ["error: masters have an agent, and no other machines", "hint: --agent FILE"]),
    ],
)
def test_a_machine_that_cannot_be_told_is_one_error(
    call: Call, words: list[str], config: Config, more: tuple[str, ...], said: list[str]
) -> None:
    names = {group["role"]: name for name, group in config.groups.items()}
    option, group = more
    group = {"masters": names["Master"], "noodes": f"{names['Node'][0]}{names['Node']}"}[group]

    answer = call(*words, option, group)

    assert answer.code == ExitCode.INVALID
    assert answer.out == ""
    assert said[0].replace("noodes", group) in answer.err
    assert said[1].replace("nodes", names["Node"]) in answer.err


def test_where_there_are_several_groups_of_nodes_one_is_named(call: Call, words: list[str], tmp_path: Path) -> None:
    group = "---\napiVersion: protokube.io/v1alpha1\nkind: InstanceGroup\nmetadata: {name: %s}\nspec: {role: Node}\n"
    (tmp_path / "spec.yaml").write_text(SPEC.replace("  nodes: 2\n", "") + group % "large" + group % "small")

    answer = call(*words)

    assert answer.code == ExitCode.INVALID
    assert "error: name the instance group of the machine\n  saw:  2 groups of nodes" in answer.err
    assert "hint: --group is one of large, master-rack-1, small" in answer.err
