"""What the agent does to a cluster, done to a real one: add-ons, tokens, roles, requests."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from builders.addons import an_addon, an_object
from builders.agent import Alone, Machines, a_machine, a_round
from builders.command import process
from clusters.scenario.edges import HostClock
from e2e.real_api import RealApi, real_api, until
from protokube.addons import admit, approve, tokens
from protokube.addons.record import PATH as RECORD
from protokube.addons.value import Addon, ref
from protokube.agent.cluster import steps
from protokube.agent.cluster.addons import AGAIN, EVERY
from protokube.agent.edges import Edges
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.kube.client import ApiError, KubeApi
from protokube.kube.resources import Resources
from protokube.launch.addons import all_addons
from protokube.manifests.kubeconfig import by_content
from protokube.store.addons import put_addons, read_manifest

NODE = "node-1"
CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps"
CRD = "apiextensions.k8s.io"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    with real_api(tmp_path_factory.mktemp("api")) as found:
        yield found


class Agent:
    """The elected master's step, round after round."""

    def __init__(self, real: RealApi, root: Path) -> None:
        self.real = real
        self.edges: Edges = a_round(root).edges
        self.edges.kube, self.edges.store, self.edges.machines = real.api, real.store, Machines(a_machine())
        self.edges.presence = Alone({}, elected=True, serving=[self.edges.me.id])
        self.wanted = real.wanted

    def wants(self, *addons: Addon) -> None:
        self.wanted = replace(self.wanted, addons=put_addons(self.real.store, self.wanted.cluster, addons))

    def round(self, passed: float = EVERY) -> Report:
        cast(HostClock, self.edges.clock).common.advance(passed)
        round_ = Round(edges=self.edges, wanted=self.wanted, report=Report())
        steps.sync(round_)
        assert round_.report.bugs == []
        return round_.report


@pytest.fixture
def agent(real: RealApi, tmp_path: Path) -> Agent:
    """Of a cluster that knows of no add-ons: what other tests left there is nobody's."""
    with contextlib.suppress(ApiError):
        real.api.delete(RECORD)
    return Agent(real, tmp_path)


def built_in(real: RealApi) -> tuple[Addon, ...]:
    return all_addons(real.config, read_manifest)


def versions(real: RealApi, *addons: Addon) -> dict[str, str]:
    resources = Resources(real.api)
    paths = [resources.path(ref(tree), tree["apiVersion"]) for addon in addons for tree in addon.objects]
    found = {path: real.api.get(path)["metadata"] for path in [*paths, RECORD]}
    # controllers write how things stand, which is another version, but not another wish
    return {path: str(each.get("generation") or each["resourceVersion"]) for path, each in found.items()}


def test_our_add_ons_are_taken_by_a_real_server_and_a_second_time_nothing_changes(real: RealApi, agent: Agent) -> None:
    addons = built_in(real)
    agent.wants(*addons)

    first = agent.round()
    before = versions(real, *addons)
    second = agent.round()

    assert {each.about for each in first.did} == {"rbac", "cluster-dns"}
    assert first.person == []
    assert second.sentence() == ""
    assert versions(real, *addons) == before
    service = real.api.get("/api/v1/namespaces/kube-system/services/kube-dns")
    assert service["spec"]["clusterIP"] == real.config.cluster["clusterDNS"]["serverIP"]


REQUESTS, CERTIFICATES = "certificatesigningrequests", "certificates.k8s.io"
NEW = ("system:bootstrappers",)


def may(real: RealApi, verb: str, resource: str, **who: Any) -> bool:
    """The server hears of new roles a moment after it took them."""
    return bool(until(lambda: real.may(verb, resource, **who), f"{who['user']} may {verb} {resource}"))


def test_who_may_do_what(real: RealApi, agent: Agent) -> None:
    agent.wants(*built_in(real))
    agent.round()
    requests, api, new, node = REQUESTS, CERTIFICATES, NEW, ("system:nodes",)

    assert may(real, "create", requests, user="system:bootstrap:x", groups=new, group=api)
    assert not real.may("create", f"{requests}/nodeclient", user="system:bootstrap:x", groups=new, group=api)
    assert not real.may("get", "secrets", user="system:bootstrap:x", groups=new)
    assert may(real, "create", f"{requests}/selfnodeclient", user=f"system:node:{NODE}", groups=node, group=api)
    assert not real.may("update", f"{requests}/approval", user=f"system:node:{NODE}", groups=node, group=api)
    assert may(real, "get", "nodes/proxy", user="kube-apiserver")
    assert not real.may("get", "secrets", user="kube-apiserver")
    assert may(real, "list", "nodes", user="anybody", groups=node)
    assert may(real, "watch", "services", user="system:kube-proxy")
    assert may(real, "list", "endpoints", user="system:serviceaccount:kube-system:coredns")


def test_what_left_an_add_on_goes_and_what_is_not_ours_or_holds_data_stays(real: RealApi, agent: Agent) -> None:
    space = an_object("shop", "Namespace", "")
    one, two, claim = (
        an_object("one", namespace="shop"),
        an_object("two", namespace="shop"),
        an_object("data", "PersistentVolumeClaim", "shop", spec=CLAIM),
    )
    agent.wants(an_addon("shop", space, one, two, claim))
    assert agent.round().person == []
    theirs = "/api/v1/namespaces/shop/configmaps"
    real.api.create(theirs, an_object("theirs", namespace="shop"))

    agent.wants(an_addon("shop", two))
    gone = agent.round()
    agent.wants(an_addon("other", an_object("three")))
    report = agent.round()

    assert "ConfigMap shop/one taken away" in gone.sentence()
    assert {each["metadata"]["name"] for each in real.api.get(theirs)["items"]} >= {"theirs"}
    assert not {"one", "two"} & {each["metadata"]["name"] for each in real.api.get(theirs)["items"]}
    assert {each.about for each in report.person} == {"Namespace shop", "PersistentVolumeClaim shop/data"}
    assert real.api.get("/api/v1/namespaces/shop")["status"]["phase"] == "Active"
    assert list(json.loads(json.dumps(real.api.get(RECORD)["data"]))) == ["other.json", "shop.json"]


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def test_an_object_of_somebody_else_keeps_its_content_until_it_is_handed_over(real: RealApi, agent: Agent) -> None:
    real.api.create(CONFIGMAPS, an_object("taken", data={"whose": "theirs"}))
    agent.wants(an_addon("mine", an_object("taken", data={"whose": "ours"})))

    left = agent.round()
    content = real.api.get(f"{CONFIGMAPS}/taken")["data"]
    real.api.merge(f"{CONFIGMAPS}/taken", {"metadata": {"labels": {"protokube.io/addon": "mine"}}})
    report = agent.round()

    assert [each.about for each in left.person] == ["ConfigMap kube-system/taken"]
    assert content == {"whose": "theirs"}
    assert report.person == []
    assert real.api.get(f"{CONFIGMAPS}/taken")["data"] == {"whose": "ours"}


def test_a_kind_that_an_add_on_brings_is_unknown_first_and_its_objects_come_a_little_later(
    real: RealApi, agent: Agent
) -> None:
    widget = a_custom_object("Widget", 7)
    agent.wants(an_addon("widgets", widget))
    first = agent.round()
    agent.wants(an_addon("widgets", definition("Widget"), widget))

    until(lambda: agent.round(passed=AGAIN).settled, "the kind is served, and the object applied")

    assert [each.about for each in first.waits] == ["Widget.example.com default/one"]
    assert real.api.get(f"{custom_path('Widget')}/one")["spec"] == widget["spec"]
    assert agent.round().sentence() == ""


def test_custom_resources_are_written_and_read_again_and_again_and_the_server_lives(real: RealApi) -> None:
    """A server built with code that does not fit its compiler dies of the maps in them."""
    real.api.create(f"/apis/{CRD}/v1/customresourcedefinitions", definition("Gadget"))
    path = custom_path("Gadget")

    def served() -> bool:
        try:
            return not real.api.get(path)["items"]
        except ApiError:
            return False

    until(served, "the kind is served")
    real.api.create(path, a_custom_object("Gadget", 0))
    for round_ in range(1, 201):
        wanted = a_custom_object("Gadget", round_)
        real.api.apply(f"{path}/one", wanted, manager="test")
        real.api.merge(f"{path}/one", {"metadata": {"annotations": {f"example.com/{round_ % 9}": str(round_)}}})
        (found,) = real.api.get(path)["items"]
        assert found["spec"] == wanted["spec"]
        assert found["metadata"]["annotations"][f"example.com/{round_ % 9}"] == str(round_)

    assert real.api.text("/readyz") == "ok"


def custom_path(kind: str) -> str:
    return f"/apis/example.com/v1/namespaces/default/{kind.lower()}s"


def a_custom_object(kind: str, number: int) -> dict[str, Any]:
    """With maps in maps, small ones and some that are not small."""
    parts = {f"part-{each}": {"number": number * each, "name": f"{number}/{each}", "on": True} for each in range(20)}
    spec = {"parts": parts, "sizes": {"length": number, "width": 1.5, "none": {}}, "list": [{"a": number}, {"b": 2}]}
    return an_object("one", kind, "default", spec=spec)


def definition(kind: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{names['plural']}.example.com"}
    return {"apiVersion": f"{CRD}/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


def test_an_object_that_the_server_refuses_is_told_in_its_words(real: RealApi, agent: Agent) -> None:
    agent.wants(an_addon("bad", an_object("Not_A_Name"), an_object("good")))

    report = agent.round()

    assert [each.about for each in report.person] == ["ConfigMap kube-system/Not_A_Name"]
    assert "Invalid value" in report.person[0].text
    assert real.api.get(f"{CONFIGMAPS}/good")


def request_for(key: ec.EllipticCurvePrivateKey, names: list[x509.GeneralName], of: str = NODE) -> str:
    parts = [(NameOID.COMMON_NAME, f"system:node:{of}"), (NameOID.ORGANIZATION_NAME, "system:nodes")]
    subject = x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return b64encode(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode()


def ask(api: KubeApi, name: str, signer: str, use: str, request: str) -> None:
    spec = {"request": request, "signerName": signer, "usages": ["digital signature", "key encipherment", use]}
    tree = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name}}
    api.create(approve.PATH, {**tree, "spec": spec})


def signed(real: RealApi, name: str) -> bytes:
    def look() -> str:
        return str(real.api.get(f"{approve.PATH}/{name}").get("status", {}).get("certificate", ""))

    return b64decode(until(look, f"{name} is signed"))


def refusal(newcomer: KubeApi) -> ApiError:
    with pytest.raises(ApiError) as refused:
        newcomer.get("/api/v1/nodes")
    return refused.value


def until_known(newcomer: KubeApi) -> None:
    """The server hears of a new token a moment after it took it."""
    until(lambda: refusal(newcomer).status != 401, "the token is known")


def test_a_node_comes_in_by_a_token_and_gets_certificates_for_its_own_names_only(
    real: RealApi, agent: Agent, tmp_path: Path
) -> None:
    """As a kubelet does it: a token, a client certificate, a Node, and a serving certificate."""
    agent.wants(*built_in(real))
    agent.round()
    now = max(
        dt.datetime.now(dt.UTC), dt.datetime.fromtimestamp(agent.edges.clock.now(), dt.UTC)
    )  # servers' and agents'
    token = tokens.new_token(secrets.choice, NODE, now + dt.timedelta(hours=1))
    real.api.create(tokens.PATH, tokens.to_secret(token))
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "node.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )

    newcomer = real.by_token(str(token))
    until_known(newcomer)
    may(real, "create", REQUESTS, user="system:bootstrap:x", groups=NEW, group=CERTIFICATES)
    ask(newcomer, "client", admit.SIGNER, "client auth", request_for(key, []))
    ask(newcomer, "master", admit.SIGNER, "client auth", request_for(key, [], of="i-1"))
    first = agent.round()
    assert [each.about for each in first.did] == ["client"]
    assert "master for system:bootstrap:" in first.waits[0].text
    (tmp_path / "node.crt").write_bytes(signed(real, "client"))
    node = real.by_certificate(tmp_path / "node.crt", tmp_path / "node.key")
    node.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    addresses = [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": NODE}]
    node.merge(f"/api/v1/nodes/{NODE}/status", {"status": {"addresses": addresses}})
    own: list[x509.GeneralName] = [x509.DNSName(NODE), x509.IPAddress(ipaddress.ip_address("10.0.0.7"))]
    ask(node, "serving", approve.SIGNER, "server auth", request_for(key, own))
    ask(node, "lying", approve.SIGNER, "server auth", request_for(key, [*own, x509.DNSName("api.internal.laptop")]))
    report = agent.round()

    certificate = x509.load_pem_x509_certificate(signed(real, "serving"))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [NODE]
    assert [each.about for each in report.did] == ["serving"]
    (left,) = report.waits
    assert "lying for " in left.text
    assert "conditions" not in real.api.get(f"{approve.PATH}/master").get("status", {})
    assert "conditions" not in real.api.get(f"{approve.PATH}/lying").get("status", {})
    assert agent.round(passed=1).did == []
    with pytest.raises(ApiError, match="forbidden"):
        newcomer.get("/api/v1/nodes")


def test_a_master_marks_its_own_node(real: RealApi, agent: Agent) -> None:
    name = "i-1"
    assert a_machine().name == name
    real.api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    agent.edges.me = a_machine(group=next(iter(agent.wanted.node_labels)))

    labels = agent.wanted.node_labels[agent.edges.me.group]
    taints = {each.partition(":")[0] for each in agent.wanted.node_taints[agent.edges.me.group]}
    assert labels
    assert taints

    def marked() -> bool:
        """The controller manager changes the same lists meanwhile, and may undo what we wrote."""
        agent.round(passed=1)
        node = real.api.get(f"/api/v1/nodes/{name}")
        there = {each["key"] for each in node["spec"].get("taints") or ()}
        return labels.items() <= (node["metadata"].get("labels") or {}).items() and taints <= there

    until(marked, "the node is marked")
    until(lambda: agent.round(passed=1).did == [], "nothing is left to mark")


def test_tokens_by_the_command_let_in_until_they_are_deleted(real: RealApi, tmp_path: Path) -> None:
    keys = [(real.keys / name).read_bytes() for name in ("ca.crt", "protokube.crt", "protokube.key")]
    data = dict(zip(("ca", "certificate", "key"), keys, strict=True))
    file = tmp_path / "kubeconfig"
    file.write_text(by_content("laptop", real.server, "operator", **data))
    told = {"KUBECONFIG": str(file)}

    made = process("token", "create", NODE, "--ttl", "1h", "--description", "rack 7", env=told)
    newcomer = real.by_token(made.out.strip())
    until_known(newcomer)
    let_in = refusal(newcomer)
    listed = process("token", "list", env=told)
    deleted = process("token", "delete", made.out.strip(), env=told)

    assert (made.code, listed.code, deleted.code) == (0, 0, 0), made.err + listed.err + deleted.err
    assert let_in.status == 403  # known, but not allowed
    assert "system:bootstrap:" in let_in.message
    assert made.out.partition(".")[0] in listed.out

    until(lambda: refusal(newcomer).status == 401, "the token is no longer known")
