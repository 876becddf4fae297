"""Every example, completed: the bytes, the warnings, and that no flag or entry is unknown to its version.

`make golden` writes the golden files anew; look at the diff before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.config import EXAMPLES, ROOT, read_back, table, taken_again, written
from builders.examples import ends
from protokube.config.complete import Config, complete
from protokube.spec.decode import Tree
from protokube.spec.parse import Spec, parse

GOLDEN = Path(__file__).parent / "examples"
REFRESH = bool(os.environ.get("PROTOKUBE_REFRESH_GOLDEN"))
SEEN = ("1.20", "1.28", "1.32", "1.34", "1.36", "1.37")
"""Versions whose flags were read off their own binaries."""
MINORS = tuple(f"1.{minor}" for minor in range(20, 37))
COMPONENTS = {
    "kubeAPIServer": "kube-apiserver",
    "kubeControllerManager": "kube-controller-manager",
    "kubeScheduler": "kube-scheduler",
    "kubeProxy": "kube-proxy",
    "kubelet": "kubelet",
}
NAMES = [path.stem for path in EXAMPLES]


def example(name: str) -> Spec:
    path = ROOT / "examples" / f"{name}.yaml"
    return parse([(f"examples/{name}.yaml", path.read_text("utf-8"))])


@cache
def completed(name: str) -> Config:
    return complete(example(name))


@cache
def at_version(name: str, version: str) -> Config:
    """An example as it would be for another version of Kubernetes."""
    spec = example(name)
    return complete(replace(spec, cluster={**spec.cluster, "kubernetesVersion": f"{version}.0"}))


def golden(path: Path, text: str) -> str:
    """What the golden file says, written anew when asked for; no file stands for nothing."""
    if REFRESH:
        path.unlink(missing_ok=True)
        if text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    return path.read_text("utf-8") if path.exists() else ""


def warnings_text(config: Config) -> str:
    return "".join(f"{warning}\n" for warning in config.warnings)


def given_flags(config: Config) -> Iterator[tuple[str, str]]:
    """Every flag of every component, with the name of its binary."""
    for rendered in config.rendered.values():
        for component, binary in COMPONENTS.items():
            yield from ((binary, flag) for flag in rendered.get(component, {}).get("flags", {}))


def etcd_files(config: Config) -> Iterator[Tree]:
    for members in config.rendered[""]["etcd"].values():
        for member in members.values():
            yield from member["files"].values()


def etcd_flag_names(content: Tree) -> Iterator[str]:
    """The flag each entry of etcd's file stands for."""
    for key, value in content.items():
        if key == "client-transport-security":
            yield from value
        elif key == "peer-transport-security":
            yield from (f"peer-{name}" for name in value)
        else:
            yield key


@pytest.mark.parametrize("name", NAMES)
def test_an_example_completes_to_its_golden_file_byte_for_byte(name: str) -> None:
    text = written(completed(name))

    assert text == golden(GOLDEN / f"{name}.yaml", text)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_gives_the_warnings_of_its_golden_file(name: str) -> None:
    text = warnings_text(completed(name))

    assert text == golden(GOLDEN / f"{name}.warnings", text)


def test_every_golden_file_belongs_to_an_example() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_completing_an_example_twice_gives_the_same_bytes(name: str) -> None:
    spec = example(name)

    first, second, fresh = (written(complete(each)) for each in (spec, spec, example(name)))

    assert first == second == fresh


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize("name", NAMES)
def test_completing_a_complete_configuration_changes_nothing_and_adds_no_problem(name: str, form: str) -> None:
    config = completed(name)

    again = read_back(written(config, form))

    assert written(again) == written(config)
    assert written(again, "json") == written(config, "json")
    # warnings about a document of the original are not repeated for ours, and there are no new ones
    assert {each.path for each in again.warnings} <= {each.path for each in config.warnings}


@pytest.mark.parametrize("version", SEEN)
@pytest.mark.parametrize("name", NAMES)
def test_no_flag_is_unknown_to_the_binary_it_is_given_to(name: str, version: str) -> None:
    config = at_version(name, version)

    unknown = [(binary, flag) for binary, flag in given_flags(config) if flag not in table(version)[binary]]

    assert unknown == []


@pytest.mark.parametrize("version", [version for version in SEEN if version != "1.20"])
@pytest.mark.parametrize("name", NAMES)
def test_no_kubelet_gets_a_flag_its_binary_calls_deprecated(name: str, version: str) -> None:
    config = at_version(name, version)

    listed = table(version)["kubelet"]
    assert [
        flag for binary, flag in given_flags(config) if binary == "kubelet" and listed[flag].get("deprecated")
    ] == []


HIDDEN_IN_3_4 = ("enable-grpc-gateway",)
"""etcd 3.4 has it and does not show it in its help; tests of the agent run real 3.4 with it, through it."""


@pytest.mark.parametrize("version", SEEN)
@pytest.mark.parametrize("name", NAMES)
def test_every_entry_of_an_etcd_file_is_a_flag_of_its_etcd_and_not_deprecated(name: str, version: str) -> None:
    config = at_version(name, version)

    for cluster in config.cluster["etcdClusters"].values():
        series = ".".join(cluster["version"].removeprefix("v").split(".")[:2])
        listed = table(f"etcd-{series}")["etcd"]
        for content in etcd_files(config):
            for flag in etcd_flag_names(content):
                assert flag in listed or (series == "3.4" and flag in HIDDEN_IN_3_4)
                assert not listed.get(flag, {}).get("deprecated")


@pytest.mark.parametrize("name", NAMES)
def test_at_every_minor_version_completing_again_changes_nothing(name: str) -> None:
    for version in ends(MINORS):
        config = at_version(name, version)
        again = taken_again(config)
        assert (again.cluster, again.groups) == (config.cluster, config.groups), version
        assert again.rendered == config.rendered, version


@pytest.mark.parametrize("name", NAMES)
def test_between_two_seen_versions_no_kubelet_gets_a_flag_either_neighbour_calls_deprecated(name: str) -> None:
    for version in MINORS[MINORS.index("1.28") :]:
        below = max((seen for seen in SEEN if _minor(seen) <= _minor(version)), key=_minor)
        above = min((seen for seen in SEEN if _minor(seen) >= _minor(version)), key=_minor)
        for binary, flag in given_flags(at_version(name, version)):
            if binary == "kubelet":
                for seen in (below, above):
                    assert not table(seen)["kubelet"].get(flag, {"deprecated": True}).get("deprecated"), (version, flag)


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def test_the_examples_show_every_cloud_every_size_private_machines_and_documents_of_the_original() -> None:
    configs = {name: completed(name) for name in NAMES}

    assert len(configs) >= 12
    assert {config.cluster["cloud"] for config in configs.values()} == {"aws", "gce", "local", "metal"}
    assert {config.cluster["masters"] for config in configs.values()} == {1, 3, 5}
    assert any(config.cluster["topology"]["masters"] == "private" for config in configs.values())
    assert len([name for name in NAMES if example(name).translated]) == 2


def test_the_minimal_example_gets_flags_for_every_component_and_three_members_in_three_zones() -> None:
    config = complete(example("minimal"))

    assert {binary for binary, _ in given_flags(config)} == set(COMPONENTS.values())
    for etcd in config.cluster["etcdClusters"].values():
        assert [each["zone"] for each in etcd["members"].values()] == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert set(config.rendered[""]["etcd"]["main"]) == {"a", "b", "c"}


@pytest.mark.parametrize("name", NAMES)
def test_two_spellings_of_one_configuration_differ_in_no_value(name: str) -> None:
    """The JSON form holds what the YAML form holds, whoever reads them."""
    config = completed(name)
    as_yaml: list[Any] = _plain(written(config))
    as_json: list[Any] = _plain(written(config, "json"))[0]["items"]

    assert as_json == as_yaml


def _plain(text: str) -> list[Any]:
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))
