"""What a configuration asks of the cloud around its machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.config import EXAMPLES, completed
from protokube.config.complete import complete
from protokube.launch.cloud import CloudConfig, cloud_config, images
from protokube.launch.derive import from_config
from protokube.spec.parse import parse


@pytest.mark.parametrize("kubernetes", [True, False])
def test_the_names_and_ranges_of_a_cluster_on_one_machine(kubernetes: bool) -> None:
    text = next(each for each in EXAMPLES if each.name == "local.yaml").read_text()
    config = complete(parse([("local.yaml", text)]), without_kubernetes=not kubernetes)

    assert cloud_config(config) == CloudConfig(
        kind="local",
        dns_zone="workbench",
        pod_ranges=("100.96.0.0/11",),
        service_ranges=("100.64.0.0/13",),
        service_domain="cluster.local",
        network_plugin="kubenet",
    )


def test_a_cluster_of_two_ip_families_has_a_range_of_each() -> None:
    config = completed()
    found = cloud_config(replace(config, cluster={**config.cluster, "podCIDR": "100.96.0.0/11, fd00:10::/48"}))

    assert (found.pod_ranges, found.service_ranges) == (("100.96.0.0/11", "fd00:10::/48"), ("100.64.0.0/13",))


def test_a_cluster_without_a_zone_has_none() -> None:
    text = next(each for each in EXAMPLES if each.name == "no-zone.yaml").read_text()

    assert cloud_config(complete(parse([("no-zone.yaml", text)]))).dns_zone == ""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda each: each.stem)
def test_the_images_are_those_that_the_static_pods_of_a_master_name(path: Any) -> None:
    config = complete(parse([(path.name, path.read_text())]))
    names, wanted = images(config), from_config(config, nodes=True)
    own = {"kube-proxy": names.proxy, "dns-controller": names.dns_controller}

    assert {each.name: each.image for each in wanted.components} == {
        **names.control_plane, **{program: image for program, image in own.items() if image},
    }  # fmt: skip
    assert {each.pod.image for each in wanted.etcd} == set(names.etcd)


def test_the_image_of_ourselves_has_what_the_dns_provider_needs() -> None:
    assert images(completed(cloud="local", masters=1)).dns_controller_extras == ("dns",)
    assert images(completed(cloud="aws", dnsZone="example.com")).dns_controller_extras == ("dns", "route53")
    without = images(completed(cloud="local", masters=1, dnsController={"enabled": False}))
    assert (without.dns_controller, without.dns_controller_extras) == ("", ())


def test_only_what_runs_has_an_image() -> None:
    names = images(completed(cloud="local", masters=1, clusterDNS={"provider": "KubeDNS"}))
    assert names.core_dns == ""
    assert images(completed(cloud="local", masters=1, kubeProxy={"enabled": False})).proxy == ""
    old = completed(cloud="local", masters=1, kubernetesVersion="1.20.2", containerRuntime="docker")
    assert images(old).sandbox == ""
