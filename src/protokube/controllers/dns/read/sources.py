"""What pods, services and ingresses ask for.

A pod counts from the moment it has an address until it has finished or its deletion begins. Readiness does not count: a
pod that is not ready is most often the one that must be reached to become ready (an API server behind its own name),
and removing a name is worse than one address too many. The start of a deletion counts: on a dead node a pod stays
`Terminating` for ever, and on a live one it no longer takes on work, as the endpoints of a service show. A restart in
place does not lose the name: the value stays for a grace time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sys import intern

from protokube.controllers.dns import Ask, HostAddress, NodeAlias, Source, Value, View
from protokube.controllers.dns.read.annotations import Wrongs, addresses_of, is_address, names_by_view, names_of, shown
from protokube.controllers.dns.read.objects import BalancerStatus, Ingress, Metadata, Pod, PodStatus, Service
from protokube.records.names import address_type, normalise, problem

FINISHED = frozenset({"Succeeded", "Failed"})
INGRESS_VIEW: View = "external"
"""An ingress has no views. External names are also visible inside, unless the name has internal values of its own."""

Names = dict[View, tuple[str, ...]]


def pod_source(pod: Pod) -> Source | None:
    """Only a pod with hostNetwork has addresses that other machines can reach."""
    if _asks_nothing(pod.metadata) or (pod.status and pod.status.phase in FINISHED):
        return None
    wrongs = Wrongs()
    names = names_by_view(pod.metadata.annotations, wrongs)
    asks: list[Ask] = []
    if pod.spec is None or not pod.spec.host_network:
        wrongs.add("the pod is not on its node's network (hostNetwork), so no name can lead to it")
    elif node := pod.spec.node_name:
        own = addresses_of(_pod_addresses(pod.status), wrongs) if "internal" in names else ()
        targets = [HostAddress(address_type(address), address, intern(node)) for address in own]
        for name in names.get("internal", ()):
            asks += (Ask(name=name, view="internal", target=target) for target in targets or (None,))
        alias = NodeAlias("name", intern(node), "external")
        asks += (Ask(name=name, view="external", target=alias) for name in names.get("external", ()))
    else:
        asks += (Ask(name=name, view=view, target=None) for view in names for name in names[view])
    return make_source("pod", pod.metadata, asks, wrongs)


def service_source(service: Service) -> Source | None:
    """A load balancer has addresses of its own; a node port is open on every node."""
    if _asks_nothing(service.metadata):
        return None
    wrongs = Wrongs()
    names = names_by_view(service.metadata.annotations, wrongs)
    kind = (service.spec.type if service.spec else None) or "ClusterIP"
    asks: list[Ask] = []
    if kind == "LoadBalancer":
        asks += _balanced(names, service.status, wrongs)
    elif kind == "NodePort":
        aliases = {view: NodeAlias("role", "node", view) for view in names}
        asks += (Ask(name=name, view=view, target=aliases[view]) for view in names for name in names[view])
    else:
        wrongs.add(f"a service of type {shown(kind)} cannot be reached from outside; LoadBalancer or NodePort can")
    return make_source("service", service.metadata, asks, wrongs)


def ingress_source(ingress: Ingress) -> Source | None:
    """Every host of its rules, at the addresses of its load balancer."""
    metadata = ingress.metadata
    if metadata.deletion_timestamp is not None:
        return None
    wrongs = Wrongs()
    if not _asks_nothing(metadata):
        wrongs.add("annotations about names are not read on an ingress; the hosts of its rules are its names")
    rules = (ingress.spec.rules if ingress.spec else None) or ()
    names = names_of((rule.host or "" for rule in rules), wrongs)
    return make_source("ingress", metadata, [*_balanced({INGRESS_VIEW: names}, ingress.status, wrongs)], wrongs)


def make_source(kind: str, metadata: Metadata, asks: Iterable[Ask], wrongs: Wrongs) -> Source | None:
    """None if there is nothing to keep."""
    asked, wrong = tuple(asks), wrongs.all()
    if not asked and not wrong:
        return None
    created, uid = intern(metadata.creation_timestamp or ""), metadata.uid or ""
    return Source(key=key_of(kind, metadata), created=created, uid=uid, asks=asked, wrong=wrong)


def key_of(kind: str, metadata: Metadata) -> str:
    return "/".join(part for part in (kind, metadata.namespace, metadata.name) if part)


def _asks_nothing(metadata: Metadata) -> bool:
    """Whether the object asks for no name, or no longer: a deletion counts from its start."""
    annotations = metadata.annotations
    if metadata.deletion_timestamp is not None or annotations is None:
        return True
    return not (annotations.internal or annotations.external)


def _pod_addresses(status: PodStatus | None) -> Iterator[str | None]:
    if status is not None:
        yield status.address
        yield from (each.ip for each in status.addresses or ())


def _balanced(names: Names, status: BalancerStatus | None, wrongs: Wrongs) -> Iterator[Ask]:
    """The same values in every view. If there are addresses, host names are left out: no name can have both."""
    balancer = status.load_balancer if status else None
    points = (balancer.ingress if balancer else None) or ()
    hosts = [point.hostname for point in points if point.hostname]
    addresses = addresses_of((*(point.ip for point in points), *filter(is_address, hosts)), wrongs)
    values = [Value(address_type(address), address) for address in addresses]
    if not values:
        values = [Value("CNAME", host) for host in _host_names(hosts, wrongs)]
    for view, asked in names.items():
        for name in asked:
            if Value("CNAME", name) in values:
                wrongs.add(f"{name} cannot be a CNAME of itself")
            others = [value for value in values if value.value != name]
            for target in others or (None,):
                yield Ask(name=name, view=view, target=target)


def _host_names(hosts: Iterable[str], wrongs: Wrongs) -> list[str]:
    found: set[str] = set()
    for host in hosts:
        if is_address(host):
            continue
        if why := "it is a wildcard" if host.startswith("*") else problem(host):
            wrongs.add(f"the load balancer's host name {shown(host)} cannot be used: {why}")
        else:
            found.add(intern(normalise(host)))
    return sorted(found)
