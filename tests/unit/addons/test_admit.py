"""The first certificate of a new node: for the one node that its token was created for, and for nobody else."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.requests import JOINING, NAME, a_first_request, a_request, content
from protokube.addons.admit import token_id, why_not
from protokube.addons.tokens import Token
from protokube.addons.value import Tree

NOW = dt.datetime(2031, 5, 4, 12, 0, tzinfo=dt.UTC)
TOKEN = Token(id="abcdef", secret="0123456789abcdef", expires=NOW + dt.timedelta(hours=1), node=NAME)


def test_the_node_of_the_token_gets_its_certificate() -> None:
    assert why_not(a_first_request(), TOKEN, NOW) == ""


def test_a_kubelet_with_an_rsa_key_has_one_usage_more() -> None:
    assert why_not(a_first_request(usages=["key encipherment", "digital signature", "client auth"]), TOKEN, NOW) == ""


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (a_first_request(content("system:node:master-a", dns=(), ips=())), f"created for {NAME}, and it is for "),
        (a_first_request(content("system:node:", dns=(), ips=())), "created for"),
        (a_first_request(content(NAME, dns=(), ips=())), "created for"),
        (a_first_request(content(f"system:node:{NAME}x", dns=(), ips=())), "created for"),
        (a_first_request(content(f"system:node:{NAME.upper()}", dns=(), ips=())), "created for"),
        (a_first_request(content(organizations=("system:masters",), dns=(), ips=())), "O=system:masters"),
        (a_first_request(content(organizations=("system:nodes", "system:masters"), dns=(), ips=())), "created for"),
        (a_first_request(content(organizations=(), dns=(), ips=())), "created for"),
        (a_first_request(content(unit="x", dns=(), ips=())), "created for"),
        (a_first_request(content()), "more than the name"),
        (a_first_request(content(dns=(), ips=(), is_ca=True)), "more than the name"),
        (a_first_request(content(dns=(), ips=(), uris=("spiffe://x",))), "more than the name"),
        (a_first_request("bm90IGEgcmVxdWVzdA=="), "cannot be read"),
        (a_first_request(usages=["digital signature", "server auth"]), "it is for digital signature, server auth"),
        (a_first_request(usages=["digital signature", "client auth", "server auth"]), "server auth"),
        (a_first_request(usages=["client auth", "digital signature", "client auth"]), "it is for"),
        (a_first_request(usages=[]), "no use"),
        (a_first_request(signerName="kubernetes.io/kube-apiserver-client"), "for the signer"),
        (a_first_request(username="system:bootstrap:fedcba"), "no such token"),
        (a_first_request(username="system:node:node-1"), "no such token"),
        (a_first_request(username="abcdef"), "no such token"),
        (a_first_request(groups=["system:authenticated"]), "no such token"),
        (a_request(), "for the signer"),
        ({"metadata": {"name": "x"}}, "for the signer"),
    ],
)
def test_what_is_wrong_is_never_approved(request_: Tree, words: str) -> None:
    assert words in why_not(request_, TOKEN, NOW)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (None, "there is no such token"),
        (replace(TOKEN, expires=NOW), "has expired"),
        (replace(TOKEN, expires=None), "never expires"),
        (replace(TOKEN, node=""), "created for no node; `protokube token create NODE` creates one"),
        (replace(TOKEN, node="node-2"), "created for node-2"),
        (replace(TOKEN, id="fedcba"), "there is no such token"),
    ],
)
def test_a_token_that_is_gone_old_or_for_another_node_admits_nobody(token: Token | None, words: str) -> None:
    assert words in why_not(a_first_request(), token, NOW)


def test_no_token_admits_a_master() -> None:
    assert why_not(a_first_request(), TOKEN, NOW, {NAME}) == f"{NAME} is a master"


@pytest.mark.parametrize(
    "user", ["system:bootstrap:", "system:bootstrap:ABCDEF", "system:bootstrap:../../x", "", "abc"]
)
def test_a_user_that_is_no_token_names_no_path(user: str) -> None:
    assert token_id(a_first_request(username=user)) == ""


@given(
    name=st.sampled_from([NAME, "node-2", "master-a", ""]),
    organizations=st.lists(st.sampled_from(["system:nodes", "system:masters"]), max_size=2),
    dns=st.sampled_from([(), ("node-1.example",)]),
    changed=st.dictionaries(
        st.sampled_from(sorted(JOINING)), st.sampled_from(["", [], ["system:masters"], "system:admin"]), max_size=1
    ),
    node=st.sampled_from([NAME, "node-2", "master-a", ""]),
    hours=st.integers(-1, 1),
)
def test_whatever_is_asked_for_only_the_tokens_own_node_is_approved(
    name: str, organizations: list[str], dns: tuple[str, ...], changed: dict[str, Any], node: str, hours: int
) -> None:
    request = a_first_request(content(f"system:node:{name}", tuple(organizations), dns, ()), **changed)
    token = replace(TOKEN, node=node, expires=NOW + dt.timedelta(hours=hours))

    right = name == node and name in (NAME, "node-2")
    whole = right and organizations == ["system:nodes"] and not dns and not changed and hours > 0

    assert (why_not(request, token, NOW, {"master-a"}) == "") == whole
