"""Decide which requests for a kubelet's first client certificate to approve: those for the node of their token.

The holder of a bootstrap token chooses the name in the request, and the approver of Kubernetes would accept any name,
that of a master too. So it may not approve them, and each token names the one node that it was created for.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from protokube.addons import csr
from protokube.addons.tokens import ID, Token
from protokube.addons.value import Tree

SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
USER, GROUP = "system:bootstrap:", "system:bootstrappers"
USAGES = ({"digital signature", "client auth"}, {"digital signature", "key encipherment", "client auth"})
"""Since 1.27 a kubelet with an elliptic-curve key requests the first set, all others the second."""
MESSAGE = "its token was created for this node"


def token_id(request: Tree) -> str:
    """The id of the token by which it was made; "" if a node renews its certificate, or somebody else made it."""
    user = str((request.get("spec") or {}).get("username", ""))
    return user.removeprefix(USER) if user.startswith(USER) and ID.fullmatch(user.removeprefix(USER)) else ""


def why_not(request: Tree, token: Token | None, now: dt.datetime, masters: Collection[str] = ()) -> str:
    """Why a request must not be approved; "" if it may be. `masters` are Nodes, which no token admits."""
    spec: Tree = request.get("spec") or {}
    if spec.get("signerName") != SIGNER:
        return f"it is for the signer {spec.get('signerName')}"
    if (
        token is None
        or not token_id(request)
        or token.id != token_id(request)
        or GROUP not in (spec.get("groups") or ())
    ):
        return "there is no such token"
    if token.expires is None or token.expires <= now:
        return "its token has expired" if token.expires else "its token never expires"
    if not token.node:
        return "its token was created for no node; `protokube token create NODE` creates one"
    usages = spec.get("usages") or []
    if set(usages) not in USAGES or len(usages) != len(set(usages)):
        return f"it is for {', '.join(map(str, usages)) or 'no use'}"
    try:
        content = csr.read(spec.get("request"))
    except csr.WrongRequest as why:
        return str(why)
    if content.user != f"{csr.NODE_USER}{token.node}":
        return f"its token was created for {token.node}, and it is for {content.subject}"
    if content.names != frozenset():
        return "it asks for more than the name of its node"
    if token.node in masters:
        return f"{token.node} is a master"
    return ""
