"""Which containerd a machine gets, and what it is told."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest

from builders.config import completed
from builders.setups import (
    AMAZON_2023,
    DEBIAN_12,
    DEBIAN_13,
    ROCKY_9,
    a_setup,
    an_asset,
    assets,
    derived,
    packages,
    the_file,
    the_unit,
)  # fmt: skip
from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import containerd_config
from protokube.nodeup.model.runtime import CONFIG, choose
from protokube.nodeup.model.whole import tasks_of
from protokube.nodeup.values import Asset, Image, Installed
from protokube.spec.version import Version

V2, V3 = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"


def chosen(kubernetes: str, offered: str, **containerd: Any) -> str:
    """`archive`, `image`, or the version of the package."""
    setup = a_setup("Node", kubernetesVersion=kubernetes, containerd=containerd)
    facts = replace(DEBIAN_12, available=(("containerd", offered),) if offered else ())
    found = choose(setup, facts)
    assert not found.why_not
    return "archive" if found.archive else str(found.version or "image")


@pytest.mark.parametrize(
    ("version", "offered", "expected"),
    [
        ("1.36.4", "1.6.20~ds1-1+b1", "1.6.20"),
        ("1.36.4", "2.0.5-1.amzn2023.0.1", "2.0.5"),
        ("1.36.4", "1.5.9-0ubuntu1~20.04.6", "archive"),
        ("1.25.16", "1.5.9-0ubuntu1~20.04.6", "1.5.9"),
        ("1.25.16", "1.3.3-0ubuntu2", "archive"),
        ("1.20.15", "1.4.13~ds1-1", "archive"),
        ("1.22.17", "2.0.5-1", "archive"),
        ("1.22.17", "1.7.24~ds1-6+b4", "1.7.24"),
        ("1.23.17", "2.0.5-1", "2.0.5"),
        ("1.36.4", "", "archive"),
        ("1.36.4", "unknown", "archive"),
    ],
)
def test_the_package_of_the_distribution_is_taken_where_it_fits_that_kubernetes(
    version: str, offered: str, expected: str
) -> None:
    assert chosen(version, offered) == expected


def test_a_setup_with_a_kubernetes_older_than_any_we_know_is_no_traceback() -> None:
    setup = replace(a_setup("Node"), kubernetes="1.19.16")

    assert str(choose(setup, DEBIAN_12).version) == "1.6.20"


def test_a_version_that_the_spec_asks_for_is_the_one_that_is_installed() -> None:
    assert chosen("1.36.4", "1.7.24~ds1-6+b4", version="1.7.20") == "archive"
    assert chosen("1.36.4", "1.7.24~ds1-6+b4", version="1.7.24") == "1.7.24"
    assert chosen("1.36.4", "1.7.24~ds1-6+b4", skipInstall=True) == "image"


def test_the_package_of_docker_serves_where_the_distribution_has_none() -> None:
    facts = replace(ROCKY_9, available=(*ROCKY_9.available, ("containerd.io", "1.7.27-3.1.el9")))

    assert "containerd.io" in packages(tasks_of(a_setup(), facts))


def test_an_archive_brings_program_and_unit_and_a_package_its_own() -> None:
    archive, package = tasks_of(a_setup(), ROCKY_9), tasks_of(a_setup(), DEBIAN_12)

    assert {each.path for each in archive if isinstance(each, Installed)} >= {"/usr/local/bin", "/usr/local/sbin/runc"}
    assert "ExecStart=/usr/local/bin/containerd\n" in (the_unit(archive, "containerd.service").content or "")
    assert "containerd" not in packages(archive)
    assert the_unit(package, "containerd.service").content is None
    assert "containerd" in packages(package)
    for tasks in (archive, package):
        unit = the_unit(tasks, "containerd.service")
        assert (unit.enabled, unit.running, f"file {CONFIG}" in unit.restart_on) == (True, True, True)


def test_a_runtime_of_the_image_is_configured_and_started_and_not_installed() -> None:
    tasks = tasks_of(a_setup(containerd={"skipInstall": True}), replace(DEBIAN_12, available=DEBIAN_12.available[1:]))

    assert "containerd" not in packages(tasks)
    assert tomllib.loads(the_file(tasks, CONFIG).content.decode())["version"] == 2
    assert the_unit(tasks, "containerd.service").running is True


def config(setup: MachineSetup, facts: Facts, version: Version | None) -> dict[str, Any]:
    return tomllib.loads(containerd_config.text(setup, facts, version))


@pytest.mark.parametrize(
    ("version", "form", "plugins"),
    [
        (Version(1, 6, 20), 2, {"bin_dir": "/opt/cni/bin"}), (None, 2, {"bin_dir": "/opt/cni/bin"}),
        (Version(2, 0, 5), 3, {"bin_dir": "/opt/cni/bin"}), (Version(2, 1, 4), 3, {"bin_dirs": ["/opt/cni/bin"]}),
    ],
)  # fmt: skip
def test_the_form_is_that_of_its_version(version: Version | None, form: int, plugins: dict[str, Any]) -> None:
    found = config(a_setup(), DEBIAN_12, version)
    runtime = found["plugins"][V2 if form == 2 else V3]

    assert found["version"] == form
    assert runtime["cni"] == {**plugins, "conf_dir": "/etc/cni/net.d"}
    assert runtime["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": True}
    pause = {2: lambda: runtime["sandbox_image"],
             3: lambda: found["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"]}  # fmt: skip
    assert pause[form]() == "registry.k8s.io/pause:3.10.2"


@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
@pytest.mark.parametrize("version", ["1.20.15", "1.36.4"])
def test_the_cgroup_driver_is_that_of_the_kubelet(driver: str, version: str) -> None:
    setup = a_setup(kubernetesVersion=version, kubelet={"cgroupDriver": driver})

    for facts in (DEBIAN_12, DEBIAN_13, AMAZON_2023):
        text = containerd_config.text(setup, facts, choose(setup, facts).version)
        assert containerd_config.drivers(text) == {driver}


def test_in_a_container_no_lower_oom_score_is_asked_for() -> None:
    inside = config(a_setup(), replace(DEBIAN_12, container=True), Version(1, 6))

    assert inside["plugins"][V2]["restrict_oom_score_adj"] is True
    assert "restrict_oom_score_adj" not in config(a_setup(), DEBIAN_12, Version(1, 6))["plugins"][V2]


def test_additions_are_merged_under_their_dotted_keys() -> None:
    additions = {'plugins."x.y".deep.key': "a", "debug.uid": 5, "grpc.address": "/own.sock", "oom_score": -5}

    found = config(a_setup(containerd={"logLevel": "debug", "configAdditions": additions}), DEBIAN_12, Version(1, 7))

    assert found["plugins"]["x.y"] == {"deep": {"key": "a"}}
    assert found["debug"] == {"level": "debug", "uid": 5}
    assert (found["grpc"]["address"], found["oom_score"]) == ("/own.sock", -5)


def test_a_whole_file_of_the_spec_is_written_as_it_is() -> None:
    text = '# mine\nversion = 2\n\n[plugins."io.containerd.grpc.v1.cri"]\nsandbox_image = "x"\n'

    assert the_file(tasks_of(a_setup(containerd={"configOverride": text}), DEBIAN_12), CONFIG).content.decode() == text


def test_mirrors_are_asked_in_their_order_before_the_registry() -> None:
    both = ["https://b.example", "https://a.example"]
    mirrors = {"docker.io": both, "*": ["http://all:5000"], "https://r.example": []}

    found = containerd_config.hosts(a_setup(containerd={"registryMirrors": mirrors}))

    folders = ("_default", "docker.io", "r.example")
    assert list(found) == [f"/etc/containerd/certs.d/{name}/hosts.toml" for name in folders]
    assert list(tomllib.loads(found["/etc/containerd/certs.d/docker.io/hosts.toml"])["host"]) == both


def test_images_are_imported_before_the_agent_starts_and_one_archive_may_hold_two() -> None:
    names = {"registry.k8s.io/pause:3.10": "images.tar", "registry.k8s.io/etcd:3.6.8": "images.tar"}
    given = (*assets(), an_asset("images.tar"))
    tasks = tasks_of(derived(completed(cloud="metal"), assets=given, images=names).setup, DEBIAN_12)

    images = [each for each in tasks if isinstance(each, Image)]
    assert {each.name: each.asset for each in images} == names
    assert len([each for each in tasks if isinstance(each, Asset) and each.name == "images.tar"]) == 1
    assert {each.key for each in images} < set(the_unit(tasks, "protokube-agent.service").after)
