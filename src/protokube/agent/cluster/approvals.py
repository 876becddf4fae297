"""Approve CSRs of kubelets: the first client certificate of a new node, and serving certificates.

Kubernetes does not know the machines: it has no approver for the latter, and that for the former accepts any name.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from protokube.addons import admit, approve, tokens
from protokube.addons.approve import GROUP, PATH, approval, is_open
from protokube.addons.nodes import CONTROL_PLANE, MASTER
from protokube.addons.value import Tree
from protokube.agent.edges import Kube
from protokube.agent.round import Round
from protokube.kube.client import ApiError

STEP = "approvals"
MOST, SECONDS = 50, 2.0
"""Approvals per round, and seconds spent on them: a flood of requests must not delay the agent's other steps."""
PAGE, MOST_PAGES = "500", 20
NAMED, LONGEST_REASON = 3, 200


def sync(round_: Round, kube: Kube) -> None:
    """An invalid request is left open and reported, not denied: a Node may not have published all its addresses yet.

    So it is listed again in every round. Only approvals count against the limit, or a few invalid requests would hide
    all valid ones.
    """
    serving = [each for each in listed(kube, approve.SIGNER) if is_open(each)]
    first = [each for each in listed(kube, admit.SIGNER) if is_open(each) and admit.token_id(each)]
    if not serving and not first:
        return
    began, judge = round_.edges.clock.monotonic(), _Judge(round_, kube)
    wrong, approved = list[str](), 0
    for request in fair_order([*serving, *first]):
        if reason := judge.why_not(request):
            who = request["spec"].get("username", "")
            wrong.append(f"{request['metadata']['name']} for {who} ({reason[:LONGEST_REASON]})")
        else:
            _approve(round_, kube, request, judge.now)
            approved += 1
        if approved == MOST or round_.edges.clock.monotonic() - began > SECONDS:
            break
    if wrong:
        round_.waiting(STEP, "", f"not approved: {summarise(wrong)}")


class _Judge:
    """What the decisions of one round need: the Nodes, and each token, read once."""

    def __init__(self, round_: Round, kube: Kube) -> None:
        self.kube, self.now = kube, dt.datetime.fromtimestamp(round_.edges.clock.now(), dt.UTC)
        self.nodes = {each["metadata"]["name"]: each for each in kube.get("/api/v1/nodes").get("items") or []}
        self.reserved = reserved(round_)
        self.tokens: dict[str, tokens.Token | None] = {}

    def why_not(self, request: Tree) -> str:
        if request["spec"].get("signerName") == approve.SIGNER:
            return approve.why_not(request, self.nodes, self.reserved)
        return admit.why_not(request, self._token(admit.token_id(request)), self.now, self._masters())

    def _token(self, token_id: str) -> tokens.Token | None:
        if token_id not in self.tokens:
            try:
                self.tokens[token_id] = tokens.from_secret(self.kube.get(tokens.secret_path(token_id)))
            except ApiError as why:
                if why.status != 404:
                    raise
                self.tokens[token_id] = None
        return self.tokens[token_id]

    def _masters(self) -> set[str]:
        roles = {MASTER, CONTROL_PLANE}
        return {name for name, node in self.nodes.items() if roles & (node["metadata"].get("labels") or {}).keys()}


def fair_order(requests: Iterable[Tree]) -> list[Tree]:
    """The newest request of each user, then the second of each: a user with a thousand requests delays no other."""
    counts, found = Counter[str](), list[tuple[int, Tree]]()
    for each in sorted(requests, key=lambda each: str(each["metadata"].get("creationTimestamp")), reverse=True):
        who = str(each["spec"].get("username"))
        found.append((counts[who], each))
        counts[who] += 1
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def summarise(wrong: Sequence[str]) -> str:
    """Name the first few, count the others."""
    others = len(wrong) - NAMED
    return ", ".join(wrong[:NAMED]) + (f" and {others} others" if others > 0 else "")


def _approve(round_: Round, kube: Kube, request: Tree, now: dt.datetime) -> None:
    name, who = request["metadata"]["name"], request["spec"]["username"]
    message = admit.MESSAGE if admit.token_id(request) else approve.MESSAGE
    try:
        kube.merge(f"{PATH}/{name}/approval", approval(request, now.strftime("%Y-%m-%dT%H:%M:%SZ"), message))
    except ApiError as why:  # the others can still be approved
        round_.report.needs_a_person(STEP, why, name)
    else:
        round_.report.done(STEP, f"approved for {who}", name)


def listed(kube: Kube, signer: str) -> Iterator[Tree]:
    """All requests, by pagination: decided ones stay in the list for hours, and must not hide the others."""
    query = {"fieldSelector": f"spec.signerName={signer}", "limit": PAGE}
    for _ in range(MOST_PAGES):
        page = kube.get(PATH, **query)
        yield from page.get("items") or ()
        query["continue"] = (page.get("metadata") or {}).get("continue", "")
        if not query["continue"]:
            return


def reserved(round_: Round) -> set[str]:
    """Names in serving certificates of the control plane, which no Node may get."""
    servers = [each for each in round_.wanted.certificates.values() if "server auth" in each.usages]
    return {name for each in servers if GROUP not in each.organizations for name in each.names}
