"""The dns-controller runs where there is a DNS provider; its settings are derived from the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import completed, kops, origin, the_problem, warnings
from protokube import __version__
from protokube.addons import rbac
from protokube.config import dnscontroller
from protokube.config.complete import complete
from protokube.controllers.dns.assemble import Options
from protokube.local.host.network import GATEWAY
from protokube.records.api import LEASE as NAMES_LEASE

PLACE = "/srv/kubernetes/dns-controller"
IMAGE = f"protokube/dns-controller:{__version__}"


def settings(**cluster: Any) -> dict[str, Any]:
    config = completed(**cluster)
    found: dict[str, Any] = config.cluster["dnsController"]
    return found | {"runs": dnscontroller.runs(config.cluster)}


def test_on_aws_it_writes_to_route_53_and_needs_no_word() -> None:
    assert settings(cloud="aws", dnsZone="example.com") == {
        "runs": True,
        "enabled": True,
        "watchIngress": False,
        "provider": "aws-route53",
        "zones": ["example.com"],
        "image": IMAGE,
        "kubeconfig": f"{PLACE}/kubeconfig",
    }


def test_a_zone_may_be_named_by_its_id() -> None:
    assert settings(cloud="aws", dnsZone="Z2FDTNDATAQYW2")["zones"] == ["*/Z2FDTNDATAQYW2"]


def test_without_a_zone_route_53_is_asked_which_there_are() -> None:
    assert "zones" not in settings(cloud="aws")


def test_in_the_local_cloud_it_writes_to_the_embedded_server_with_the_key_of_the_store() -> None:
    found = settings(cloud="local", name="laptop")
    assert (found["runs"], found["provider"], found["server"]) == (True, "rfc2136", GATEWAY)
    assert (found["zones"], found["keyFile"]) == (["laptop"], f"{PLACE}/update.key")


def test_what_is_said_twice_in_the_code_is_the_same() -> None:
    assert dnscontroller.LOCAL_SERVER == GATEWAY
    assert (Options().lease, NAMES_LEASE) == (rbac.DNS_LEASE, rbac.NAMES_LEASE)


def test_on_gce_it_does_not_run_yet_and_that_is_told() -> None:
    config = completed(cloud="gce")
    assert not dnscontroller.runs(config.cluster)
    assert "Cloud DNS is not built yet" in warnings(config)["dnsController.enabled"].message
    quiet = completed(cloud="gce", dnsController={"enabled": False})
    assert "dnsController.enabled" not in warnings(quiet)


@pytest.mark.parametrize("cloud", ["gce", "metal"])
def test_elsewhere_it_runs_once_a_server_is_named(cloud: str) -> None:
    found = settings(cloud=cloud, dnsZone="example.com", dnsController={"server": "192.0.2.53"})
    assert (found["runs"], found["enabled"], found["provider"]) == (True, True, "rfc2136")
    assert (found["server"], found["zones"], found["keyFile"]) == ("192.0.2.53", ["example.com"], f"{PLACE}/update.key")


def test_in_racks_it_is_off_without_a_word_and_a_wish_that_cannot_be_met_is_told() -> None:
    quiet = completed(cloud="metal")
    assert quiet.cluster["dnsController"] == {"enabled": False, "watchIngress": False}
    assert "dnsController.enabled" not in warnings(quiet)
    wished = completed(cloud="metal", dnsController={"enabled": True})
    assert not dnscontroller.runs(wished.cluster)
    assert "no DNS provider is given" in warnings(wished)["dnsController.enabled"].message


@pytest.mark.parametrize("zones", [{}, {"zones": []}])
def test_a_server_without_zones_is_a_problem(zones: dict[str, Any]) -> None:
    found = the_problem(cloud="metal", dnsController={"server": "192.0.2.53", **zones})
    assert (found.path, "cannot list its zones" in found.message) == ("dnsController.zones", True)


def test_rfc2136_without_a_server_is_a_problem() -> None:
    found = the_problem(cloud="aws", dnsZone="example.com", dnsController={"provider": "rfc2136"})
    assert found.path == "dnsController.server"


def test_where_no_zone_holds_the_name_it_does_not_run_unless_a_provider_is_said() -> None:
    assert not settings(cloud="aws", name="dev.k8s.local")["runs"]
    assert settings(cloud="aws", name="dev.k8s.local", dnsController={"provider": "aws-route53"})["runs"]


def test_a_provider_that_we_do_not_have_is_a_problem() -> None:
    assert the_problem(dnsController={"provider": "google-clouddns"}).path == "dnsController.provider"


def test_the_image_comes_from_the_registry_of_the_users_where_there_is_one() -> None:
    found = settings(cloud="aws", assets={"containerRegistry": "images.example.com/copies/"})
    assert found["image"] == f"images.example.com/copies/{IMAGE}"


def test_documents_of_the_original_that_turn_it_off_have_it_off() -> None:
    config = complete(kops({"externalDns": {"disable": True}, "subnets": [{"name": "a", "zone": "us-east-1a"}]}))
    assert not dnscontroller.runs(config.cluster)


def test_it_may_ask_the_api_in_a_name_of_its_own_and_is_in_no_group() -> None:
    found = completed().cluster["pki"]["certificates"]["dns-controller"]
    assert (found["commonName"], found["organizations"], found["usages"]) == (rbac.DNS_USER, [], ["client auth"])


def test_each_decision_says_why() -> None:
    config = completed(cloud="local", name="laptop")
    assert origin(config, "dnsController.zones").of == ("dnsZone",)
    assert "embedded" in origin(config, "dnsController.provider").because
    assert "dns-update-key" in origin(config, "dnsController.keyFile").because
