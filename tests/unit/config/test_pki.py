"""Certificates name only what their holders are called by, and etcd's authorities are apart from the cluster's."""

from __future__ import annotations

from typing import Any

from builders.config import completed, read_back, the_problem, warnings, written
from protokube.addons.rbac import rbac
from protokube.spec.decode import Tree


def certificates(**cluster: Any) -> dict[str, Tree]:
    return dict(completed(**cluster).cluster["pki"]["certificates"])


def test_etcd_has_authorities_of_its_own_one_for_peers_and_one_for_clients() -> None:
    authorities = completed().cluster["pki"]["authorities"]

    assert list(authorities) == ["kubernetes-ca", "front-proxy-ca", "etcd-peer-ca", "etcd-client-ca"]


def test_no_certificate_of_the_cluster_opens_anything_in_etcd() -> None:
    found = certificates()
    inside_etcd = {name for name, each in found.items() if each["authority"].startswith("etcd-")}

    assert {name for name in inside_etcd if not name.startswith("etcd-")} == {
        "kube-apiserver-etcd-client",
        "protokube-etcd-client",
    }
    assert all(found[name]["authority"] == "etcd-peer-ca" for name in inside_etcd if name.endswith("-peer"))
    assert all(found[name]["authority"] == "etcd-client-ca" for name in inside_etcd if name.endswith("-server"))


def test_no_certificate_holds_a_wildcard() -> None:
    assert not [name for each in certificates().values() for name in each["names"] if "*" in name]


def test_a_member_is_good_for_its_own_name_and_loopback_only() -> None:
    found = certificates()

    for kind in ("peer", "server"):
        names = found[f"etcd-events-b-{kind}"]["names"]
        assert names == ["etcd-events-b.internal.dev.example.com", "localhost", "127.0.0.1"]
    assert found["etcd-a-peer"]["usages"] == ["server auth", "client auth"]


def test_every_member_of_every_cluster_has_a_peer_and_a_serving_certificate() -> None:
    found = certificates(masters=5)
    members = completed(masters=5).cluster["etcdClusters"]

    for key, prefix in (("main", "etcd"), ("events", "etcd-events")):
        for name in members[key]["members"]:
            assert {f"{prefix}-{name}-peer", f"{prefix}-{name}-server"} <= found.keys()


def test_the_api_server_is_good_for_every_name_it_is_called_by_and_none_twice() -> None:
    fields = {"additionalSans": ["kubernetes.example.org", "localhost"], "clusterDNSDomain": "inside.test"}
    names = certificates(**fields)["kube-apiserver"]["names"]

    assert names == [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.inside.test",
        "api.internal.dev.example.com",
        "api.dev.example.com",
        "kubernetes.example.org",
        "localhost",
        "100.64.0.1",
        "127.0.0.1",
    ]


def test_the_first_address_of_the_services_is_on_the_certificate_of_the_api_server() -> None:
    names = certificates(nonMasqueradeCIDR="10.0.0.0/8")["kube-apiserver"]["names"]

    assert "10.0.0.1" in names
    assert "100.64.0.1" not in names


def test_members_are_named_beside_whatever_the_user_calls_the_internal_api() -> None:
    found = certificates(masterInternalName="api.hidden.example.org")

    assert found["etcd-a-peer"]["names"][0] == "etcd-a.hidden.example.org"


def test_the_agent_alone_is_a_master_of_the_cluster() -> None:
    found = certificates()

    assert [name for name, each in found.items() if "system:masters" in each["organizations"]] == ["protokube"]


def test_whom_the_api_server_is_towards_kubelets_is_allowed_to_by_an_add_on_of_every_cluster() -> None:
    user = certificates()["kube-apiserver-kubelet-client"]["commonName"]
    for runs in (True, False):
        (binding,) = [each for each in rbac(dns_controller=runs).objects if "apiserver" in each["metadata"]["name"]]
        assert binding["kind"] == "ClusterRoleBinding"
        assert binding["roleRef"]["name"] == "system:kubelet-api-admin"
        assert [(each["kind"], each["name"]) for each in binding["subjects"]] == [("User", user)]


def test_clients_cannot_serve_and_the_api_server_cannot_pose_as_a_client() -> None:
    found = certificates()

    assert found["kube-scheduler"]["usages"] == ["client auth"]
    assert found["kube-scheduler"]["names"] == []
    assert found["kube-apiserver"]["usages"] == ["server auth"]


def test_what_the_user_says_of_keys_stands() -> None:
    pki = completed(pki={"keyPairs": []}).cluster["pki"]

    assert pki["keyPairs"] == []
    assert "kubernetes-ca" in pki["authorities"]


def test_certificates_live_a_year_unless_the_user_says_otherwise() -> None:
    assert completed().cluster["pki"]["certificateLifetime"] == "8760h"
    short = completed(pki={"certificateLifetime": "60s"})
    assert short.cluster["pki"]["certificateLifetime"] == "60s"
    assert read_back(written(short)).cluster["pki"] == short.cluster["pki"]


def test_a_life_too_short_to_be_renewed_in_is_a_problem() -> None:
    assert the_problem(pki={"certificateLifetime": "30s"}).message == "30s is shorter than 60s"


def test_a_life_that_components_cannot_follow_is_a_warning() -> None:
    warning = warnings(completed(pki={"certificateLifetime": "29m"}))["pki.certificateLifetime"]
    assert "every five minutes" in warning.message
    assert warning.hint.startswith("30m or longer")
    assert "pki.certificateLifetime" not in warnings(completed(pki={"certificateLifetime": "30m"}))
