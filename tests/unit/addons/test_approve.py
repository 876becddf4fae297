"""Requests for kubelets' serving certificates: the right one is approved, and nothing else ever is."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from builders.requests import DNS, IP, NAME, NODES, OTHER, RIGHT, SHARED, a_node, a_request, content
from protokube.addons.approve import approval, is_open, names_of, why_not
from protokube.addons.value import Tree


def test_what_a_kubelet_really_asks_for_is_right() -> None:
    assert why_not(a_request(), NODES) == ""


def test_a_kubelet_with_an_elliptic_key_needs_one_usage_less() -> None:
    assert why_not(a_request(usages=["digital signature", "server auth"]), NODES) == ""


def test_addresses_are_the_same_in_every_spelling() -> None:
    assert why_not(a_request(content(dns=("NODE-1.Example",), ips=("2001:db8:0:0::7",))), NODES) == ""


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (a_request(signerName="kubernetes.io/kube-apiserver-client"), "for the signer"),
        (a_request(username="system:node:"), "is no node"),
        (a_request(username="admin", groups=["system:nodes"]), "admin is no node"),
        (a_request(groups=["system:authenticated"]), "is no node"),
        (a_request(usages=["digital signature", "client auth"]), "it is for digital signature, client auth"),
        (a_request(usages=["digital signature", "server auth", "client auth"]), "client auth"),
        (a_request(usages=["server auth"]), "it is for server auth"),
        (a_request(usages=[]), "no use"),
        (a_request(username="system:node:node-3"), "there is no Node node-3"),
        (a_request(content(common_name="system:node:node-2")), "it is for"),
        (a_request(content(common_name="")), "it is for"),
        (a_request(content(organizations=())), "it is for"),
        (a_request(content(organizations=("system:nodes", "system:masters"))), "it is for"),
        (a_request(content(organizations=("system:masters",))), "it is for"),
        (a_request(content(organizations=("system:nodes", "system:nodes"))), "it is for"),
        (a_request(content(unit="x")), "it is for"),
        (a_request(content(dns=("api.example",))), "the Node does not have api.example"),
        (a_request(content(ips=(OTHER,))), f"the Node does not have {OTHER}"),
        (a_request(content(dns=("*.example",))), "does not have"),
        (a_request(content(dns=(), ips=())), "no name"),
        (a_request(content(dns=(IP,), ips=())), "more than names"),
        (a_request(content(uris=("spiffe://x",))), "more than names"),
        (a_request(content(is_ca=True)), "more than names"),
        (a_request("bm90IGEgcmVxdWVzdA=="), "cannot be read"),
        (a_request("***"), "cannot be read"),
        ({"metadata": {"name": "x"}}, "for the signer"),
    ],
)
def test_what_is_wrong_is_never_approved(request_: Tree, words: str) -> None:
    assert words in why_not(request_, NODES)


def test_an_address_that_two_nodes_claim_is_given_to_neither() -> None:
    assert why_not(a_request(content(ips=(OTHER,))), SHARED) == f"{OTHER} is not the Node's alone"


def test_a_node_that_claims_a_name_of_the_control_plane_does_not_get_it() -> None:
    liar = {NAME: a_node(("Hostname", "API.internal.dev"), ("InternalIP", "100.64.0.1"))}
    reserved = {"api.internal.dev", "100.64.0.1"}

    assert "API.internal.dev".lower() in why_not(a_request(content(dns=("api.internal.dev",), ips=())), liar, reserved)
    assert "100.64.0.1" in why_not(a_request(content(dns=(), ips=("100.64.0.1",))), liar, reserved)


def test_a_request_that_was_changed_after_it_was_signed_is_not_approved() -> None:
    der = x509.load_pem_x509_csr(b64decode(content())).public_bytes(serialization.Encoding.DER)
    forged = der.replace(DNS.encode(), DNS.encode()[::-1], 1)
    body = b64encode(forged).decode()
    pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n"

    assert why_not(a_request(b64encode(pem.encode()).decode()), NODES) == "it is not signed by its own key"


@pytest.mark.parametrize(
    "status", [{"conditions": [{"type": "Approved"}]}, {"conditions": [{"type": "Denied"}]}, {"certificate": "eA=="}]
)
def test_what_is_decided_is_not_decided_again(status: Tree) -> None:
    request = {**a_request(), "status": status}

    assert not is_open(request)
    assert why_not(request, NODES) == "it is decided already"


def test_the_approval_holds_for_the_very_request_that_was_judged() -> None:
    patch = approval(a_request(), "2031-05-04T10:00:00Z")

    assert patch["metadata"] == {"resourceVersion": "5"}
    assert [each["type"] for each in patch["status"]["conditions"]] == ["Approved"]


NAMES = st.sampled_from([DNS, "node-2.example", "api.internal.dev", "*.example", IP])
IPS = st.lists(st.sampled_from([IP, OTHER, "2001:db8::7", "100.64.0.1", "127.0.0.1"]), max_size=2, unique=True)


@given(
    dns=st.lists(NAMES, max_size=2, unique=True).map(tuple),
    ips=IPS.map(tuple),
    common_name=st.sampled_from([f"system:node:{NAME}", "system:node:node-2", "kube-apiserver", ""]),
    organizations=st.sampled_from([("system:nodes",), (), ("system:masters",), ("system:nodes", "system:masters")]),
    uris=st.sampled_from([(), (), ("https://x",)]),
    is_ca=st.booleans(),
    unit=st.sampled_from(["", "", "x"]),
    username=st.sampled_from([f"system:node:{NAME}", "system:node:node-2", "system:node:node-9", "admin"]),
    groups=st.sampled_from([["system:nodes"], ["system:masters"], []]),
    usages=st.lists(
        st.sampled_from(["digital signature", "key encipherment", "server auth", "client auth", "cert sign"]),
        max_size=4,
    ),
    signer=st.sampled_from([RIGHT["signerName"], RIGHT["signerName"], "kubernetes.io/legacy-unknown"]),
)
def test_whatever_is_asked_for_only_a_nodes_own_names_for_serving_are_approved(
    dns: tuple[str, ...], ips: tuple[str, ...], common_name: str, organizations: tuple[str, ...], uris: tuple[str, ...],
    is_ca: bool, unit: str, username: str, groups: list[str], usages: list[str], signer: str,
) -> None:  # fmt: skip
    body = content(common_name, organizations, dns, ips, uris, is_ca, unit)
    request = a_request(body, username=username, groups=groups, usages=usages, signerName=signer)

    approved = why_not(request, NODES) == ""

    own = names_of(NODES.get(username.removeprefix("system:node:"), {}))
    right = (
        signer == RIGHT["signerName"]
        and username == common_name
        and username.startswith("system:node:")
        and "system:nodes" in groups
        and organizations == ("system:nodes",)
        and sorted(usages) in (["digital signature", "server auth"], sorted(RIGHT["usages"]))
        and not uris
        and not is_ca
        and not unit
        and bool(dns or ips)
        and {*dns, *ips} <= own
        and IP not in dns
    )
    assert approved == right


PLAIN = st.none() | st.booleans() | st.text()


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_nonsense_is_refused_in_words(nonsense: Any) -> None:
    request = a_request()
    request["spec"]["request"] = nonsense

    assert why_not(request, NODES).startswith("it cannot be read")
