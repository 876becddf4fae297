"""What is merged into a kubeconfig, under which name, and into which file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import yaml

from builders.kubeconfigs import CONFIG, a_kubeconfig, a_tree, an_access, an_owner, encoded, entries_of_others
from protokube.errors import Refused
from protokube.local.contexts import document
from protokube.local.contexts.merging import Access, MergePlan, plan_merge, plan_refresh
from protokube.local.contexts.user_kubeconfig import changes_of

OTHER = "/home/jane/other"


def merged(
    files: dict[str, bytes | None], access: Access | None = None, *, switch: bool = True
) -> tuple[MergePlan, dict[str, bytes | None]]:
    plan = plan_merge([document.read(path, data) for path, data in files.items()], access or an_access(), switch=switch)
    changes = changes_of(files, plan.edits, current_last=True)
    return plan, {**files, **{each.path: each.after for each in changes}}


def only(data: bytes | None = None, access: Access | None = None, *, switch: bool = True) -> bytes:
    after = merged({CONFIG: data}, access, switch=switch)[1][CONFIG]
    assert after is not None
    return after


def names(data: bytes, section: str) -> list[str]:
    return [each["name"] for each in yaml.safe_load(data)[section]]


def test_without_a_file_there_is_one_with_the_cluster_its_user_and_a_current_context() -> None:
    tree = yaml.safe_load(only())

    assert (tree["apiVersion"], tree["kind"], tree["current-context"]) == ("v1", "Config", "protokube-dev")
    (cluster,), (user,), (context,) = tree["clusters"], tree["users"], tree["contexts"]
    assert {cluster["name"], user["name"], context["name"]} == {"protokube-dev"}
    assert cluster["cluster"]["server"] == "https://127.0.0.1:6443"
    assert cluster["cluster"]["certificate-authority-data"] == encoded("ca of dev")
    assert user["user"]["client-certificate-data"] == encoded("certificate of dev")
    assert user["user"]["client-key-data"] == encoded("key of dev")
    assert (context["context"]["cluster"], context["context"]["user"]) == ("protokube-dev", "protokube-dev")


@pytest.mark.parametrize(
    "empty",
    [
        b"", b"\n", b"# nothing yet\n", b"---\n", b"apiVersion: v1\nkind: Config\nclusters: null\n",
        b"apiVersion: v1\nclusters: []\nusers: []\ncontexts: []\ncurrent-context: ''\n",
    ],
)  # fmt: skip
def test_an_empty_file_is_filled(empty: bytes) -> None:
    after = only(empty)

    assert yaml.safe_load(after)["current-context"] == "protokube-dev"
    assert [names(after, section) for section in ("clusters", "users", "contexts")] == [["protokube-dev"]] * 3


def test_entries_of_others_and_their_order_stay() -> None:
    before = a_kubeconfig("prod", "staging", current="prod")
    after = only(before)

    assert entries_of_others([after]) == entries_of_others([before])
    assert names(after, "contexts") == ["prod", "staging", "protokube-dev"]


def test_the_former_context_is_remembered_also_if_ours_does_not_become_the_current_one() -> None:
    for switch in (True, False):
        tree = yaml.safe_load(only(a_kubeconfig("prod", current="prod"), switch=switch))
        extension = tree["contexts"][-1]["context"]["extensions"][0]["extension"]

        assert extension["former"] == "prod"
        assert tree["current-context"] == ("protokube-dev" if switch else "prod")


def test_a_second_time_nothing_changes() -> None:
    once = only(a_kubeconfig("prod", current="prod"))
    plan, twice = merged({CONFIG: once})

    assert (plan.edits, plan.current) == ((), True)
    assert twice[CONFIG] == once


def test_a_second_time_after_another_tool_has_written_the_file_nothing_changes() -> None:
    once = yaml.safe_load(only(a_kubeconfig("prod", current="prod")))
    plan, _ = merged({CONFIG: yaml.safe_dump(once, sort_keys=True, default_flow_style=None).encode()})

    assert plan.edits == ()


def test_another_port_authority_or_certificate_is_refreshed_and_a_namespace_stays() -> None:
    tree = yaml.safe_load(only(a_kubeconfig("prod", current="prod")))
    tree["contexts"][1]["context"]["namespace"] = "shop"
    tree["clusters"][1]["cluster"] |= {"insecure-skip-tls-verify": True, "proxy-url": "http://127.0.0.1:3128"}
    before = yaml.safe_dump(tree).encode()

    after = yaml.safe_load(only(before, an_access(port=7443)))

    assert after["clusters"][1]["cluster"]["server"] == "https://127.0.0.1:7443"
    assert "insecure-skip-tls-verify" not in after["clusters"][1]["cluster"]
    assert after["clusters"][1]["cluster"]["proxy-url"] == "http://127.0.0.1:3128"
    assert after["contexts"][1]["context"]["namespace"] == "shop"


def test_a_context_that_the_user_renamed_keeps_its_new_name() -> None:
    tree = yaml.safe_load(only())
    tree["contexts"][0]["name"] = tree["current-context"] = "mine"
    plan, files = merged({CONFIG: yaml.safe_dump(tree).encode()}, an_access(port=7443))

    assert plan.context == "mine"
    assert names(files[CONFIG] or b"", "contexts") == ["mine"]


@pytest.mark.parametrize("section", ["clusters", "users", "contexts"])
def test_a_name_that_belongs_to_somebody_else_is_not_taken(section: str) -> None:
    tree = a_tree("prod", current="prod")
    tree[section][0]["name"] = "protokube-dev"
    before = yaml.safe_dump(tree).encode()

    plan, files = merged({CONFIG: before})

    assert plan.context.startswith("protokube-dev-")
    assert entries_of_others(files.values()) == entries_of_others([before])


def test_a_cluster_of_the_same_name_with_another_state_has_another_context() -> None:
    first = only()
    after = only(first, an_access(owner=an_owner("elsewhere")))

    assert len(set(names(after, "contexts"))) == 2
    assert yaml.safe_load(after)["current-context"] == names(after, "contexts")[1] != "protokube-dev"


def test_if_both_names_belong_to_others_it_is_refused() -> None:
    tree = a_tree("protokube-dev", current="protokube-dev")
    second = merged({CONFIG: yaml.safe_dump(tree).encode()})[0].context
    taken = yaml.safe_dump(a_tree("protokube-dev", second)).encode()

    with pytest.raises(Refused, match="entries of others named protokube-dev"):
        merged({CONFIG: taken})


def test_a_user_of_their_own_has_a_context_of_their_own() -> None:
    after = only(only(), an_access(user="jane"))

    assert names(after, "contexts") == ["protokube-dev", "protokube-dev-jane"]


@pytest.mark.parametrize(
    ("files", "written"),
    [
        ({CONFIG: None, OTHER: None}, OTHER),
        ({CONFIG: None, OTHER: b""}, OTHER),
        ({CONFIG: b"", OTHER: b""}, CONFIG),
        ({CONFIG: b"", OTHER: None}, CONFIG),
    ],
)
def test_of_several_files_the_first_that_exists_is_written_else_the_last(
    files: dict[str, bytes | None], written: str
) -> None:
    plan, after = merged(files)

    assert plan.path == written
    assert [path for path in after if after[path] != files[path]] == [written]


def test_another_port_reaches_every_user_but_no_address_that_somebody_chose() -> None:
    """As `export kubeconfig --merge --server` chooses one."""
    data = only(only(), an_access(user="jane"))
    chosen = replace(an_access(user="joe"), server="https://api.example.com", ca=encoded("an old ca"))
    data = only(data, chosen)
    now = an_access(port=7443)

    plan = plan_refresh([document.read(CONFIG, data)], now)
    (change,) = changes_of({CONFIG: data}, plan.edits, current_last=True)

    clusters = {each["name"]: each["cluster"] for each in yaml.safe_load(change.after)["clusters"]}
    assert [clusters[name]["server"] for name in ("protokube-dev", "protokube-dev-jane", "protokube-dev-joe")] == [
        now.server, now.server, "https://api.example.com",
    ]  # fmt: skip
    assert {each["certificate-authority-data"] for each in clusters.values()} == {now.ca}
    assert plan_refresh([document.read(CONFIG, change.after)], now).edits == ()


def test_an_entry_is_refreshed_in_the_file_that_has_it() -> None:
    files: dict[str, bytes | None] = {CONFIG: a_kubeconfig("prod", current="prod"), OTHER: only()}
    plan, after = merged(files, an_access(port=7443), switch=False)

    assert plan.path == OTHER
    assert after[CONFIG] == files[CONFIG]
    assert b"7443" in (after[OTHER] or b"")


def test_of_two_files_the_one_that_switches_is_written_last() -> None:
    files: dict[str, bytes | None] = {CONFIG: a_kubeconfig("prod", current="prod"), OTHER: only(switch=False)}
    chain = [document.read(path, data) for path, data in files.items()]
    plan = plan_merge(chain, an_access(port=7443), switch=True)

    assert [each.path for each in changes_of(files, plan.edits, current_last=True)] == [OTHER, CONFIG]


@pytest.mark.parametrize("order", [("a", "b", "a"), ("a", "b", "c", "b", "a"), ("a", "b", "b", "a", "c", "a")])
def test_clusters_that_come_up_in_any_order_never_remember_each_other_in_a_circle(order: Sequence[str]) -> None:
    data = a_kubeconfig("prod", current="prod")
    for each in order:
        data = only(data, an_access(each))
    former = {
        each["name"]: extension["extension"].get("former", "")
        for each in yaml.safe_load(data)["contexts"]
        for extension in each["context"].get("extensions", ())
    }

    at, seen = f"protokube-{order[-1]}", list[str]()
    while at in former:
        assert at not in seen
        seen.append(at)
        at = former[at]
    assert at == "prod"
    assert set(seen) == set(former)
