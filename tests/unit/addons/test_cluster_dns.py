"""The DNS server of the pods, and its file."""

from __future__ import annotations

from typing import Any

from protokube.addons.cluster_dns import cluster_dns
from protokube.addons.corefile import corefile
from protokube.spec.version import Version

DNS: dict[str, Any] = {
    "provider": "CoreDNS", "domain": "cluster.local", "serverIP": "100.64.0.10", "image": "coredns:1", "replicas": 2,
}  # fmt: skip


def test_the_users_own_file_is_taken_as_it_is() -> None:
    assert corefile({**DNS, "externalCoreFile": ". {\n}\n"}) == ". {\n}\n"


def test_servers_for_single_domains_and_for_the_rest_are_asked() -> None:
    text = corefile(
        {**DNS, "stubDomains": {"b.example": ["10.0.0.2", "10.0.0.3"]}, "upstreamNameservers": ["10.9.9.9"]}
    )

    assert "forward . 10.9.9.9 {" in text
    assert text.endswith("b.example:53 {\n    errors\n    cache 30\n    forward . 10.0.0.2 10.0.0.3\n}\n")


def test_every_brace_of_the_file_is_closed() -> None:
    text = corefile({**DNS, "cacheMaxSize": 5000, "cacheMaxConcurrent": 7, "stubDomains": {"a.b": ["10.0.0.2"]}})

    assert text.count("{") == text.count("}")
    assert "success 5000" in text
    assert "max_concurrent 7" in text


def test_another_server_than_ours_is_left_to_its_user() -> None:
    assert cluster_dns({**DNS, "provider": "KubeDNS"}, Version(1, 36)) is None


def test_what_the_user_says_of_its_pods_reaches_them() -> None:
    settings = {
        "tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": {}}, "podAnnotations": {"a": "b"},
        "cpuRequest": "7m", "memoryRequest": "8Mi", "memoryLimit": "9Mi",
    }  # fmt: skip
    addon = cluster_dns({**DNS, **settings}, Version(1, 36))
    assert addon is not None
    (deployment,) = (each for each in addon.objects if each["kind"] == "Deployment")
    template = deployment["spec"]["template"]

    assert template["metadata"]["annotations"] == {"a": "b"}
    assert template["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert template["spec"]["affinity"] == {"nodeAffinity": {}}
    assert template["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "7m", "memory": "8Mi"}, "limits": {"memory": "9Mi"},
    }  # fmt: skip
