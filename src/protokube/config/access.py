"""Authentication and authorization of the API server: by flags, or by a configuration document.

An API server that gets the same setting in both ways does not start. So protokube leaves its own flag out where the
user gives a document, and a user's flag besides that document is a problem.
"""

from __future__ import annotations

from protokube.config.draft import Draft
from protokube.config.flags import COMPONENTS, flag_table
from protokube.spec.components.apiserver import KubeAPIServer
from protokube.spec.fields import declared
from protokube.spec.version import Version

DOCUMENT = "authorization-config"
"""The flag that names an AuthorizationConfiguration; it has no field."""
MODE = "authorizationMode"
DOES_NOT_START = "an API server does not start with both"


def complete_access(cluster: Draft, api: Draft, version: Version) -> None:
    _names(api)
    _rights(cluster, api, version)


def _names(api: Draft) -> None:
    document = api.get("authenticationConfiguration")
    if document or api.get("authenticationConfigFile"):
        hint = "name the issuers only in the authentication configuration"
        for name in _fields("oidc-"):
            if api.has(name):
                message = f"the authentication configuration names the accepted issuers; {DOES_NOT_START}"
                api.ledger.problem(api.at(name), message, hint)
    if document and document.get("anonymous") is not None:
        if api.has("anonymousAuth"):
            message = f"authenticationConfiguration.anonymous also sets this; {DOES_NOT_START}"
            api.ledger.problem(api.at("anonymousAuth"), message, "leave it out")
        return
    api.decide("anonymousAuth", False, "every request has to be authenticated")
    if api.get("authenticationConfigFile") and not document:
        message = f"protokube sets --anonymous-auth; if that file has `anonymous` too: {DOES_NOT_START}"
        api.ledger.warn(
            api.at("authenticationConfigFile"), message, "use the field authenticationConfiguration instead"
        )


def _rights(cluster: Draft, api: Draft, version: Version) -> None:
    more = api.get("extraFlags") or {}
    document = any(value and name.removeprefix("--") == DOCUMENT for name, value in more.items())
    if document and _has(DOCUMENT, version):
        given = [name for name in _fields("authorization-mode", "authorization-webhook-") if api.has(name)]
        given += [f"extraFlags.{name}" for name in more if name.removeprefix("--").startswith("authorization-webhook-")]
        for name in given:
            if name != MODE or api.get(name):
                message = f"--{DOCUMENT} also sets this; {DOES_NOT_START}"
                api.ledger.problem(api.at(name), message, "leave it out")
        return
    if api.get(MODE) == "":
        message = "without a mode every request is allowed, or the API server does not start"
        api.ledger.problem(api.at(MODE), message, f"leave it out for Node,RBAC, or set extraFlags: {DOCUMENT}")
    mode = "AlwaysAllow" if cluster.get("authorization") == "AlwaysAllow" else "Node,RBAC"
    api.decide(MODE, mode, "the authorization of the cluster", cluster.at("authorization"))


def _has(flag: str, version: Version) -> bool:
    """Whether an API server of this version has the flag, or may have it, by the flag tables."""
    table = flag_table(COMPONENTS["kubeAPIServer"], version.series)
    return table.lists(flag) or flag in table.perhaps


def _fields(*flags: str) -> list[str]:
    """The fields whose flags have one of these prefixes."""
    return [rule.name for rule in declared(KubeAPIServer).values() if rule.flag.startswith(flags)]
