"""What must be right before anything can be decided."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import FILE, a_group, a_spec, completed, problems, the_problem, warnings
from protokube.config.check.basics import is_dns_name
from protokube.config.complete import complete
from protokube.errors import InvalidSpec
from protokube.spec.parse import parse


@pytest.mark.parametrize("name", ["a", "dev.example.com", "a-b.c1", "x" * 63, "1.2"])
def test_dns_names_are_accepted(name: str) -> None:
    assert is_dns_name(name)


@pytest.mark.parametrize("name", ["", "A.b", "a..b", "-a", "a-", "a_b", "x" * 64, "a.b.", "a\n", "é"])
def test_what_dns_would_refuse_is_no_dns_name(name: str) -> None:
    assert not is_dns_name(name)


def test_a_cluster_without_a_cloud_is_asked_for_one() -> None:
    problem = the_problem(cloud=None)

    assert (problem.path, problem.message, problem.hint) == ("cloud", "is not given", "one of aws, gce, local, metal")
    assert str(problem.where) == "spec.yaml:4"


@pytest.mark.parametrize("cloud", ["aws", "gce"])
def test_a_cloud_with_zones_is_asked_where(cloud: str) -> None:
    problem = the_problem(cloud=cloud, zones=None)

    assert (problem.path, problem.message) == ("zones", "are not given")
    assert problem.hint.startswith("for example zones: [us-")
    assert problem.where is not None


def test_a_name_that_is_no_dns_name_is_a_problem_at_its_line() -> None:
    problem = the_problem(name="Dev.Example.com")

    assert problem.message == "'Dev.Example.com' is not a DNS name"
    assert str(problem.where) == f"{FILE}:4"


def test_a_name_too_long_for_the_names_of_members_is_a_problem() -> None:
    problem = the_problem(name=".".join(["x" * 60] * 4))

    assert problem.message == "243 characters are too long for the DNS names of members"
    assert problem.hint == "200 at most"


def test_a_cloud_needs_a_domain_for_its_records_and_a_laptop_does_not() -> None:
    problem = the_problem(name="dev")

    assert problem.message == "'dev' has no domain for DNS records"
    assert problem.hint == "for example dev.example.com, or dev.k8s.local without a DNS zone"
    assert completed(cloud="local", name="dev").name == "dev"


@pytest.mark.parametrize("field", ["masterInternalName", "masterPublicName", "clusterDNSDomain"])
@pytest.mark.parametrize("name", ["", "Api.example.com", "a b"])
def test_names_that_go_into_certificates_are_dns_names(field: str, name: str) -> None:
    found = problems(**{field: name})

    assert found[field].message == f"{name!r} is not a DNS name"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("newest", "'newest' is not a version"),
        ("1.19.16", "1.19.16 is older than 1.20, the oldest supported"),
        ("2.0.0", "there is no Kubernetes 2.0"),
    ],
)
def test_a_version_nobody_can_bring_up_is_a_problem(version: str, message: str) -> None:
    problem = the_problem(kubernetesVersion=version)

    assert (problem.path, problem.message) == ("kubernetesVersion", message)
    assert problem.hint


def test_a_version_not_seen_yet_is_a_warning_and_takes_the_form_of_the_newest() -> None:
    config = completed(kubernetesVersion="1.38.0")

    assert warnings(config)["kubernetesVersion"].message == (
        "1.38 is newer than the newest known version: flags and files are those of 1.37"
    )
    assert config.cluster["kubeAPIServer"]["image"].endswith(":v1.38.0")


@pytest.mark.parametrize(
    ("zones", "path", "message"),
    [
        ([], "zones", "is an empty list"),
        (["us-east-1a", "us-east-1a"], "zones[1]", "'us-east-1a' is named twice"),
        (["us-east-1"], "zones[0]", "'us-east-1' is not a zone of aws"),
        (["moon"], "zones[0]", "'moon' is not a zone of aws"),
    ],
)
def test_zones_are_zones_of_the_cloud(zones: list[str], path: str, message: str) -> None:
    found = problems(zones=zones)

    assert found[path].message == message


def test_zones_lie_in_one_region() -> None:
    problem = the_problem(zones=["us-east-1a", "eu-west-1a", "us-east-1b"])

    assert problem.message == "are in several regions: eu-west-1, us-east-1"


def test_a_rack_has_a_name_that_can_be_part_of_others() -> None:
    problem = the_problem(cloud="metal", zones=["Rack 1"])

    assert (problem.path, problem.message) == ("zones[0]", "'Rack 1' is not a name for a zone")


def test_a_group_has_a_role_and_a_name_that_machines_can_bear() -> None:
    found = problems(("Pool", {"minSize": 1}))

    assert found["instanceGroups.Pool"].message == "'Pool' is not a DNS name"
    assert (found["instanceGroups.Pool.role"].message, found["instanceGroups.Pool.role"].hint) == (
        "is not given",
        "Master or Node",
    )


def test_zones_may_be_named_by_subnets_or_groups_alone() -> None:
    by_subnet = completed(zones=None, subnets=[{"name": "s", "zone": "us-east-1a"}], masters=1)
    by_group = completed(a_group("m", "Master", zones=["us-east-1a"]), zones=None)

    assert by_subnet.cluster["zones"] == by_group.cluster["zones"] == ["us-east-1a"]


def test_zones_that_only_subnets_or_groups_name_are_zones_of_the_cloud_too() -> None:
    by_subnet = problems(zones=None, masters=1, subnets=[{"name": "s", "zone": "moon"}])
    by_group = problems(a_group("m", "Master", zones=["us-east-1a", "moon"]), zones=None)
    apart = problems(
        zones=None, subnets=[{"name": "s", "zone": "us-east-1a"}, {"name": "t", "zone": "eu-west-1a"}], masters=1
    )

    assert by_subnet["subnets.s.zone"].message == "'moon' is not a zone of aws"
    assert by_group["instanceGroups.m.zones[1]"].message == "'moon' is not a zone of aws"
    assert apart["zones"].message == "are in several regions: eu-west-1, us-east-1"
    assert apart["zones"].where is not None


def test_a_bad_name_does_not_hide_what_else_is_wrong() -> None:
    found = problems(name="Dev.example.com", masters=2, kubelet={"clusterDomain": "other"})

    assert {"metadata.name", "etcdClusters.main.members", "kubelet.clusterDomain"} <= found.keys()


def test_every_problem_of_a_spec_has_a_line_where_the_user_can_mend_it() -> None:
    fields: dict[str, Any] = {
        "kubernetesVersion": "x",
        "zones": ["us-east-1a", "us-east-1a"],
        "masterPublicName": "",
    }
    with pytest.raises(InvalidSpec) as error:
        complete(a_spec(("B", {}), **fields))

    assert all(each.where for each in error.value.problems)


def test_nothing_at_all_is_asked_for_a_cluster() -> None:
    with pytest.raises(InvalidSpec) as error:
        parse([(FILE, "")])

    assert "there is no document of kind Cluster" in str(error.value)
