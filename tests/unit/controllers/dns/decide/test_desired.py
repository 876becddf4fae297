"""From requests to values: aliases, leaked addresses, and requests without an address yet."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from builders.dns_objects import a_node, a_pod, a_service, a_source, a_target, lines
from protokube.controllers.dns import Ask, HostAddress, NodeAlias, NodeTarget, Problem, Source, Value, View
from protokube.controllers.dns.decide.desired import desired, source_of


def test_a_role_means_every_node_that_has_it() -> None:
    service = a_source(a_service("web", "NodePort", internal_names="web.example.com"))
    workers = [a_target(a_node(f"n{number}", internal=[f"10.0.0.{number}"])) for number in (1, 2)]
    master = a_target(a_node("m", internal=["10.0.0.9"], labels={"node-role.kubernetes.io/control-plane": ""}))

    assert lines(desired([service], [*workers, master]).wants) == [
        "web.example.com A 10.0.0.1 service/default/web>node/n1",
        "web.example.com A 10.0.0.2 service/default/web>node/n2",
    ]


def test_an_address_of_another_network_of_the_node_does_not_leak() -> None:
    pod = a_source(a_pod(addresses=["10.0.0.1", "100.96.1.1"], internal_names="api.example.com"))

    found = desired([pod], [a_target(a_node(internal=["10.0.0.1"]))])

    assert lines(found.wants) == ["api.example.com A 10.0.0.1 pod/default/web"]
    assert found.problems == (
        Problem(
            source="pod/default/web",
            name="api.example.com",
            why="100.96.1.1 is left out: node n1 says that its internal addresses are 10.0.0.1",
        ),
    )


def test_a_pod_is_believed_as_long_as_its_node_is_not_known_or_says_nothing() -> None:
    pod = a_source(a_pod(addresses=["10.0.0.1"], internal_names="api.example.com"))

    for nodes in ([], [a_target(a_node("n2", internal=["10.9.9.9"]))], [a_target(a_node("n1", internal=[]))]):
        assert lines(desired([pod], nodes).wants) == ["api.example.com A 10.0.0.1 pod/default/web"]


def test_an_alias_without_addresses_is_told_with_the_reason() -> None:
    pod = a_source(a_pod(external_names="api.example.com"))
    service = a_source(a_service("web", "NodePort", external_names="web.example.com"))

    without = desired([pod, service], [])
    inside_only = desired([pod, service], [a_target(a_node())])

    assert [problem.why for problem in without.problems] == ["there is no node n1", "there is no node of the role node"]
    assert [problem.why for problem in inside_only.problems] == [
        "node n1 lacks an external address",
        "no node of the role node has an external address",
    ]
    assert without.wants == inside_only.wants == ()


def test_what_has_no_address_yet_is_pending_and_no_problem() -> None:
    found = desired([a_source(a_service(internal_names="web.example.com"))], [])

    assert (found.wants, found.problems) == ((), ())
    assert [(one.source, one.name) for one in found.pending] == [("service/default/web", "web.example.com")]
    assert found.inside == {"web.example.com"}


def test_what_is_wrong_with_an_object_is_told_of_the_object() -> None:
    found = desired([a_source(a_pod(internal_names="-x"))], [])

    assert [(problem.source, problem.name) for problem in found.problems] == [("pod/default/web", "")]


def test_what_a_node_asks_for_now_counts_more_than_what_a_list_said_of_it() -> None:
    listed, now = a_target(a_node(internal_names="old.example.com")), a_node(internal_names="new.example.com")

    assert lines(desired([a_source(now)], [listed]).wants) == ["new.example.com A 10.0.0.1 node/n1"]


views: st.SearchStrategy[View] = st.sampled_from(["internal", "external"])
names = st.sampled_from(["a.example.com", "b.example.com", "*.example.com"])
node_names = st.sampled_from(["n1", "n2", "n3"])
roles = st.sampled_from(["node", "master", "gpu"])
addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1"])
typed = addresses.map(lambda address: ("AAAA" if ":" in address else "A", address))
targets = st.one_of(
    st.none(),
    typed.map(lambda pair: Value(*pair)),
    st.builds(lambda pair, node: HostAddress(pair[0], pair[1], node), typed, node_names),
    st.sampled_from(["x.example.net", "y.example.net"]).map(lambda host: Value("CNAME", host)),
    st.builds(lambda node, view: NodeAlias("name", node, view), node_names, views),
    st.builds(lambda role, view: NodeAlias("role", role, view), roles, views),
)
asks = st.builds(Ask, name=names, view=views, target=targets)
sources = st.lists(
    st.builds(
        Source,
        key=st.sampled_from([f"pod/default/p{number}" for number in range(6)]),
        created=st.sampled_from(["2026-01-01", "2026-01-02"]),
        uid=st.just(""),
        asks=st.lists(asks, max_size=4).map(tuple),
    ),
    max_size=6,
    unique_by=lambda source: source.key,
)
some_addresses = st.lists(addresses, max_size=3, unique=True).map(lambda found: tuple(sorted(found)))
nodes = st.lists(
    st.builds(
        NodeTarget,
        name=node_names,
        internal=some_addresses,
        external=some_addresses,
        roles=st.lists(roles, max_size=2, unique=True).map(lambda found: tuple(sorted(found))),
    ),
    max_size=3,
    unique_by=lambda node: node.name,
)


@given(sources, nodes, st.randoms(use_true_random=False))
def test_the_order_in_which_objects_come_does_not_matter(
    some: list[Source], targets: list[NodeTarget], chance: st.DataObject
) -> None:
    result = desired(some, targets)
    chance.shuffle(some)  # type: ignore[attr-defined]
    chance.shuffle(targets)  # type: ignore[attr-defined]

    assert desired(some, targets) == result
    assert list(result.asked) == sorted(set(result.asked))


@given(sources, nodes)
def test_every_value_was_asked_for_and_is_there(some: list[Source], targets: list[NodeTarget]) -> None:
    """Check the rules in reverse: from each value back to the objects that may ask for it."""
    by_key = {source.key: source for source in some}
    by_name = {node.name: node for node in targets}
    for one in desired(some, targets).asked:
        source = by_key[source_of(one.want.by)]
        reasons = [ask for ask in source.asks if (ask.name, ask.view) == (one.want.name, one.view)]
        assert any(_explains(ask, one.want.type, one.want.value, one.want.by, by_name) for ask in reasons)


@given(sources, nodes)
def test_every_ask_comes_to_a_value_or_to_a_reason(some: list[Source], targets: list[NodeTarget]) -> None:
    found = desired(some, targets)
    answered = {(source_of(one.want.by), one.want.name) for one in found.asked}
    explained = {(problem.source, problem.name) for problem in (*found.problems, *found.pending)}

    assert {(source.key, ask.name) for source in some for ask in source.asks} == answered | explained


@given(sources, nodes)
def test_an_object_never_changes_what_another_one_gets(some: list[Source], targets: list[NodeTarget]) -> None:
    together = desired(some, targets).asked
    alone: Sequence[object] = sorted(one for source in some for one in desired([source], targets).asked)

    assert list(together) == alone


def _explains(ask: Ask, type_: str, value: str, by: str, nodes: dict[str, NodeTarget]) -> bool:
    node_key = by.partition(">")[2]
    node = nodes.get(node_key.removeprefix("node/"))
    match ask.target:
        case Value(type=kind, value=address):
            return (kind, address) == (type_, value) and not node_key
        case HostAddress(type=kind, value=address, node=where):
            known = nodes[where].internal if where in nodes else ()
            return (kind, address) == (type_, value) and not node_key and (not known or address in known)
        case NodeAlias(kind="name", which=which, view=view):
            return node is not None and node.name == which and value in node.addresses(view)
        case NodeAlias(kind="role", which=which, view=view):
            return node is not None and which in node.roles and value in node.addresses(view)
    return False
