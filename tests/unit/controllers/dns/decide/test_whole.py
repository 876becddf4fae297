"""Objects in, zones out: every row of what the original watches, and of what it got wrong."""

from __future__ import annotations

import random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders.dns_objects import FIRST, LATER, Document, a_node, a_pod, a_service, an_ingress, lines, read_object
from clusters.dns_whole import whole
from protokube.controllers.dns.decide.zonerules import parse_rules
from protokube.records.zones import Zone

PUBLIC, PRIVATE = Zone(name="example.com", id="Z1"), Zone(name="example.com", id="Z2", private=True)

NODES = """
- kind: Node
  metadata: {name: n1, creationTimestamp: "2026-01-01T00:00:00Z", labels: {node-role.kubernetes.io/node: ""}}
  status:
    addresses:
    - {type: InternalIP, address: 10.0.0.1}
    - {type: ExternalIP, address: 192.0.2.1}
    - {type: Hostname, address: n1}
- kind: Node
  metadata: {name: m1, creationTimestamp: "2026-01-01T00:00:00Z", labels: {node-role.kubernetes.io/master: ""}}
  status:
    addresses:
    - {type: InternalIP, address: 10.0.0.9}
    - {type: InternalDNS, address: m1.internal}
"""

TABLE = {
    "a node without annotations is a target and nothing more": ("[]", []),
    "a node with annotations gets its own addresses": (
        """
- kind: Node
  metadata: {name: n2, annotations: {dns.alpha.kubernetes.io/internal: n2.example.com}}
  status: {addresses: [{type: InternalIP, address: 10.0.0.2}, {type: Hostname, address: n2}]}
""",
        ["n2.example.com A 10.0.0.2 node/n2"],
    ),
    "pod, external: the addresses of its node": (
        """
- kind: Pod
  metadata: {name: p, namespace: kube-system, annotations: {dns.alpha.kubernetes.io/external: api.example.com}}
  spec: {hostNetwork: true, nodeName: n1}
  status: {phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}]}
""",
        ["api.example.com A 192.0.2.1 pod/kube-system/p>node/n1"],
    ),
    "pod, internal: its own addresses, if its node has them": (
        """
- kind: Pod
  metadata: {name: p, namespace: kube-system, annotations: {dns.alpha.kubernetes.io/internal: "api.example.com."}}
  spec: {hostNetwork: true, nodeName: m1}
  status: {phase: Running, podIP: 10.0.0.9, podIPs: [{ip: 10.0.0.9}, {ip: 100.96.0.1}]}
""",
        ["api.example.com A 10.0.0.9 pod/kube-system/p"],
    ),
    "pod on a network of its own: nothing": (
        """
- kind: Pod
  metadata: {name: p, namespace: default, annotations: {dns.alpha.kubernetes.io/internal: api.example.com}}
  spec: {nodeName: n1}
  status: {phase: Running, podIP: 100.96.0.7}
""",
        [],
    ),
    "service, LoadBalancer with a host name: a CNAME": (
        """
- kind: Service
  metadata: {name: s, namespace: x, annotations: {dns.alpha.kubernetes.io/external: "b.example.com, *.example.com"}}
  spec: {type: LoadBalancer}
  status: {loadBalancer: {ingress: [{hostname: lb-1.example.net}]}}
""",
        [
            "*.example.com CNAME lb-1.example.net service/x/s",
            "b.example.com CNAME lb-1.example.net service/x/s",
        ],
    ),
    "service, LoadBalancer with addresses: A and AAAA": (
        """
- kind: Service
  metadata: {name: s, namespace: default, annotations: {dns.alpha.kubernetes.io/internal: web.example.com}}
  spec: {type: LoadBalancer}
  status: {loadBalancer: {ingress: [{ip: 198.51.100.1}, {ip: "2001:db8::1"}]}}
""",
        ["web.example.com A 198.51.100.1 service/default/s", "web.example.com AAAA 2001:db8::1 service/default/s"],
    ),
    "service, NodePort, internal: every node of the role node": (
        """
- kind: Service
  metadata: {name: s, namespace: default, annotations: {dns.alpha.kubernetes.io/internal: web.example.com}}
  spec: {type: NodePort}
""",
        ["web.example.com A 10.0.0.1 service/default/s>node/n1"],
    ),
    "service, NodePort, both annotations: each its own": (
        """
- kind: Service
  metadata:
    name: s
    namespace: default
    annotations: {dns.alpha.kubernetes.io/internal: in.example.com, dns.alpha.kubernetes.io/external: out.example.com}
  spec: {type: NodePort}
""",
        [
            "in.example.com A 10.0.0.1 service/default/s>node/n1",
            "out.example.com A 192.0.2.1 service/default/s>node/n1",
        ],
    ),
    "service of another type: nothing": (
        """
- kind: Service
  metadata: {name: s, namespace: default, annotations: {dns.alpha.kubernetes.io/external: web.example.com}}
  spec: {type: ClusterIP, clusterIP: 100.64.0.10}
""",
        [],
    ),
    "ingress: every host of its rules": (
        """
- kind: Ingress
  metadata: {name: i, namespace: default}
  spec: {rules: [{host: a.example.com}, {host: b.example.com}, {http: {paths: []}}]}
  status: {loadBalancer: {ingress: [{hostname: lb-2.example.net}]}}
""",
        [
            "a.example.com CNAME lb-2.example.net ingress/default/i",
            "b.example.com CNAME lb-2.example.net ingress/default/i",
        ],
    ),
    "values of several objects at one name are merged": (
        """
- kind: Pod
  metadata: {name: p, namespace: default, annotations: {dns.alpha.kubernetes.io/internal: web.example.com}}
  spec: {hostNetwork: true, nodeName: n1}
  status: {phase: Running, podIP: 10.0.0.1}
- kind: Pod
  metadata: {name: q, namespace: default, annotations: {dns.alpha.kubernetes.io/internal: web.example.com}}
  spec: {hostNetwork: true, nodeName: m1}
  status: {phase: Running, podIP: 10.0.0.9}
""",
        ["web.example.com A 10.0.0.1 pod/default/p", "web.example.com A 10.0.0.9 pod/default/q"],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_objects_come_to_the_records_of_the_original(case: str) -> None:
    written, expected = TABLE[case]
    objects = [read_object(document) for document in [*yaml.safe_load(NODES), *yaml.safe_load(written)]]

    assert lines(whole(objects, [PUBLIC], parse_rules([])).wants[PUBLIC]) == expected


def test_one_name_that_two_objects_fight_for_does_not_stop_any_other() -> None:
    """The original sent both, was refused, and updated nothing at all."""
    objects = [
        a_pod("old", internal_names="web.example.com", created=FIRST),
        a_service(
            "new", "LoadBalancer", {"hostname": "lb.example.net"}, external_names="web.example.com", created=LATER
        ),
        an_ingress("other", ["other.example.com"], {"ip": "192.0.2.7"}),
    ]
    found = whole(map(read_object, objects), [PUBLIC], parse_rules([]))

    assert lines(found.wants[PUBLIC]) == [
        "other.example.com A 192.0.2.7 ingress/default/other",
        "web.example.com A 10.0.0.1 pod/default/old",
    ]
    assert [problem.source for problem in found.problems] == ["service/default/new"]


some_names = st.lists(
    st.sampled_from(["a.example.com", "b.example.com", "*.example.com", "c.example.org", "api.example.com", "-"]),
    max_size=3,
).map(",".join)
some_addresses = st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2", "192.0.2.1", "fd00::1", "127.0.0.1"]), max_size=2)
points = st.one_of(
    st.sampled_from(["192.0.2.1", "10.0.0.2"]).map(lambda address: {"ip": address}),
    st.sampled_from(["x.example.net", "y.example.net"]).map(lambda host: {"hostname": host}),
)
keys, ages = st.sampled_from("abcd"), st.sampled_from([FIRST, LATER])
deleted = st.sampled_from([None, None, None, LATER])
asks = {"internal_names": some_names, "external_names": some_names, "created": ages, "deleted": deleted}
documents: st.SearchStrategy[Document] = st.one_of(
    st.builds(a_pod, keys, addresses=some_addresses, node=st.sampled_from(["n1", "n2", ""]), **asks),
    st.builds(a_node, st.sampled_from(["n1", "n2"]), internal=some_addresses, external=some_addresses, **asks),
    st.builds(a_service, keys, st.sampled_from(["LoadBalancer", "NodePort", "ClusterIP"]), points, points, **asks),
    st.builds(an_ingress, keys, some_names.map(lambda text: text.split(",")), points, created=ages, deleted=deleted),
)
worlds = st.lists(documents, max_size=8, unique_by=lambda document: (document["kind"], document["metadata"]["name"]))


@given(worlds, st.lists(st.sampled_from([PUBLIC, PRIVATE]), min_size=1, unique=True), st.integers())
def test_whatever_stands_in_the_cluster_the_decision_is_one_and_can_be_written(
    world: list[Document], zones: list[Zone], seed: int
) -> None:
    objects = [read_object(document) for document in world]
    found = whole(objects, zones, parse_rules([]), reserved=["api.example.com"])
    random.Random(seed).shuffle(objects)

    assert whole(objects, zones, parse_rules([]), reserved=["api.example.com"]) == found
    for wants in found.wants.values():
        values = [(want.name, want.type, want.value) for want in wants]
        assert len(set(values)) == len(values)
        for name in {want.name for want in wants}:
            types = [want.type for want in wants if want.name == name]
            assert "CNAME" not in types or types == ["CNAME"]
            assert name.endswith("example.com")
            assert name != "api.example.com"
        assert "127.0.0.1" not in {want.value for want in wants}
