"""Who is let in to the API server and what they may do: by flags, or by a document that says the same.

An API server that is told one thing in both ways does not start. So a flag of ours gives way to a document of the
user's, and a flag that the user says beside it is a problem.
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
DOES_NOT_START = "an API server that is told both does not start"


def complete_access(cluster: Draft, api: Draft, version: Version) -> None:
    _names(api)
    _rights(cluster, api, version)


def _names(api: Draft) -> None:
    document = api.get("authenticationConfiguration")
    if document or api.get("authenticationConfigFile"):
        hint = "say the issuers in the authentication configuration only"
        for name in _fields("oidc-"):
            if api.has(name):
                message = f"the authentication configuration says whose tokens are taken; {DOES_NOT_START}"
                api.ledger.problem(api.at(name), message, hint)
    if document and document.get("anonymous") is not None:
        if api.has("anonymousAuth"):
            message = f"authenticationConfiguration.anonymous says who needs no name; {DOES_NOT_START}"
            api.ledger.problem(api.at("anonymousAuth"), message, "leave it out")
        return
    api.decide("anonymousAuth", False, "nobody is let in without a name")
    if api.get("authenticationConfigFile") and not document:
        message = f"if that file says something of `anonymous`: we say --anonymous-auth too, and {DOES_NOT_START}"
        api.ledger.warn(api.at("authenticationConfigFile"), message, "say it in place, as authenticationConfiguration")


def _rights(cluster: Draft, api: Draft, version: Version) -> None:
    more = api.get("extraFlags") or {}
    document = any(value and name.removeprefix("--") == DOCUMENT for name, value in more.items())
    if document and _has(DOCUMENT, version):
        said = [name for name in _fields("authorization-mode", "authorization-webhook-") if api.has(name)]
        said += [f"extraFlags.{name}" for name in more if name.removeprefix("--").startswith("authorization-webhook-")]
        for name in said:
            if name != MODE or api.get(name):
                message = f"--{DOCUMENT} says what is allowed; {DOES_NOT_START}"
                api.ledger.problem(api.at(name), message, "leave it out")
        return
    if api.get(MODE) == "":
        message = "without one everybody may do everything, or the API server does not start"
        api.ledger.problem(api.at(MODE), message, f"leave it out for Node,RBAC, or say extraFlags: {DOCUMENT}")
    mode = "AlwaysAllow" if cluster.get("authorization") == "AlwaysAllow" else "Node,RBAC"
    api.decide(MODE, mode, "the way of the cluster", cluster.at("authorization"))


def _has(flag: str, version: Version) -> bool:
    """Whether an API server of this version knows the flag, as far as we know."""
    table = flag_table(COMPONENTS["kubeAPIServer"], version.series)
    return table.lists(flag) or flag in table.perhaps


def _fields(*flags: str) -> list[str]:
    """The fields whose flags begin like that."""
    return [rule.name for rule in declared(KubeAPIServer).values() if rule.flag.startswith(flags)]
