"""Authentication and authorization of the API server are configured in one way only: by flags, or by a document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.config import completed, flags, problems, read_back, the_problem, warnings, written
from protokube.errors import InvalidSpec
from protokube.spec.decode import Tree

VERSIONS = ("1.32.0", "1.34.1", "1.36.0")
"""Those whose own tables list both flags."""
ANONYMOUS = {"anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]}}
ISSUER = {"jwt": [{"issuer": {"url": "https://example.com"}}]}
RIGHTS = {"authorization-config": "/etc/authorization.yaml"}


def api_flags(version: str = "1.34.1", **api: Any) -> Tree:
    return flags(completed(kubeAPIServer=api, kubernetesVersion=version), "kubeAPIServer")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_document_that_says_who_needs_no_name_takes_the_place_of_our_flag(version: str) -> None:
    found = api_flags(version, authenticationConfiguration=ANONYMOUS)

    assert "anonymous-auth" not in found
    assert found["authentication-config"].endswith("/authentication.yaml")


@pytest.mark.parametrize("document", [ISSUER, {**ISSUER, "anonymous": None}], ids=["unsaid", "null"])
def test_a_document_that_says_nothing_of_it_leaves_nobody_in_without_a_name(document: Tree) -> None:
    assert api_flags(authenticationConfiguration=document)["anonymous-auth"] is False


def test_a_document_and_a_flag_about_who_needs_no_name_are_a_problem() -> None:
    found = the_problem(kubeAPIServer={"authenticationConfiguration": ANONYMOUS, "anonymousAuth": False})

    assert found.path == "kubeAPIServer.anonymousAuth"
    assert "does not start with both" in found.message
    assert found.where is not None


def test_a_file_that_we_cannot_look_into_keeps_the_flag_and_is_told_of() -> None:
    config = completed(kubeAPIServer={"authenticationConfigFile": "/etc/own.yaml"})

    assert flags(config, "kubeAPIServer")["anonymous-auth"] is False
    assert "authenticationConfiguration" in warnings(config)["kubeAPIServer.authenticationConfigFile"].hint
    assert read_back(written(config)).warnings  # not silenced by what we ourselves decided


def test_issuers_are_said_by_flags_or_by_a_document() -> None:
    flagged = {"oidcIssuerURL": "https://example.com", "oidcClientID": "us"}

    for document in ({"authenticationConfiguration": ISSUER}, {"authenticationConfigFile": "/etc/own.yaml"}):
        found = problems(kubeAPIServer={**flagged, **document})
        assert found.keys() == {"kubeAPIServer.oidcIssuerURL", "kubeAPIServer.oidcClientID"}
    assert api_flags(**flagged)["oidc-client-id"] == "us"


@pytest.mark.parametrize("version", [*VERSIONS, "1.30.0"])
@pytest.mark.parametrize("dashes", ["", "--"])
@pytest.mark.parametrize("mode", [{}, {"authorizationMode": ""}], ids=["unsaid", "empty"])
def test_a_file_that_says_what_is_allowed_takes_the_place_of_our_flag(version: str, dashes: str, mode: Tree) -> None:
    named = {f"{dashes}{name}": value for name, value in RIGHTS.items()}
    config = completed(kubeAPIServer={"extraFlags": named, **mode}, kubernetesVersion=version)

    for each in (config, read_back(written(config))):
        found = flags(each, "kubeAPIServer")
        assert "authorization-mode" not in found
        assert found["authorization-config"] == RIGHTS["authorization-config"]
        assert "kubeAPIServer.flags.authorization-mode" not in each.ledger.origins


def test_all_that_is_said_by_flags_beside_such_a_file_is_a_problem() -> None:
    more = {**RIGHTS, "authorization-webhook-version": "v1"}
    by_flags = {"authorizationMode": "RBAC,Webhook", "authorizationWebhookConfigFile": "/etc/webhook.yaml"}
    found = problems(kubeAPIServer={"extraFlags": more, **by_flags})

    assert found.keys() == {
        "kubeAPIServer.authorizationMode",
        "kubeAPIServer.authorizationWebhookConfigFile",
        "kubeAPIServer.extraFlags.authorization-webhook-version",
    }


def test_a_version_without_such_a_file_has_its_flag_and_the_one_problem_that_it_lacks_the_other() -> None:
    found = the_problem(kubeAPIServer={"extraFlags": RIGHTS, "authorizationMode": "RBAC"}, kubernetesVersion="1.28.0")

    assert found.path == "kubeAPIServer.extraFlags.authorization-config"
    assert "has no flag" in found.message


@pytest.mark.parametrize("more", [{}, {"extraFlags": {"authorization-config": ""}}], ids=["nothing", "no file"])
def test_an_empty_mode_with_nothing_in_its_place_is_a_problem(more: Tree) -> None:
    found = the_problem(kubeAPIServer={"authorizationMode": "", **more})

    assert found.path == "kubeAPIServer.authorizationMode"
    assert "Node,RBAC" in found.hint


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "anonymousAuth": st.booleans(),
            "authorizationMode": st.sampled_from(["", "RBAC"]),
            "authorizationWebhookConfigFile": st.just("/etc/webhook.yaml"),
            "oidcIssuerURL": st.just("https://example.com"),
            "authenticationConfiguration": st.sampled_from([ANONYMOUS, ISSUER, {}]),
            "extraFlags": st.sampled_from([RIGHTS, {"authorization-config": ""}, {}]),
        },
    )
)
def test_whatever_is_said_an_api_server_is_refused_here_or_told_each_thing_once(fields: Tree) -> None:
    try:
        found = api_flags(**fields)
    except InvalidSpec:
        return
    assert ("anonymous-auth" in found) != ("anonymous" in fields.get("authenticationConfiguration", {}))
    by_flags = {name for name in found if name.startswith(("authorization-mode", "authorization-webhook-"))}
    assert bool(found.get("authorization-config")) != ("authorization-mode" in by_flags)
    assert not (found.get("authorization-config") and by_flags)
    assert not ("oidc-issuer-url" in found and fields.get("authenticationConfiguration"))
    assert found.get("authorization-mode") != ""
