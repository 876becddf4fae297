"""What is taken out of a kubeconfig, and which context is current then."""

from __future__ import annotations

import pytest
import yaml

from builders.kubeconfigs import CONFIG, a_kubeconfig, a_tree, an_access, an_owner, entries_of_others, marks
from protokube.local.contexts import document
from protokube.local.contexts.merging import plan_merge
from protokube.local.contexts.removing import plan_removal
from protokube.local.contexts.user_kubeconfig import changes_of

SECOND = "/home/jane/second"
Files = dict[str, bytes | None]


def up(files: Files, cluster: str = "dev", *, switch: bool = True) -> Files:
    chain = [document.read(path, data) for path, data in files.items()]
    plan = plan_merge(chain, an_access(cluster), switch=switch)
    return {**files, **{each.path: each.after for each in changes_of(files, plan.edits, current_last=True)}}


def down(files: Files, cluster: str = "dev") -> Files:
    chain = [document.read(path, data) for path, data in files.items()]
    edits = plan_removal(chain, an_owner(cluster)).edits
    return {**files, **{each.path: each.after for each in changes_of(files, edits, current_last=False)}}


def current(files: Files) -> str:
    trees = [yaml.safe_load(data or b"") or {} for data in files.values()]
    return next((tree["current-context"] for tree in trees if tree.get("current-context")), "")


def changed(files: Files, **fields: object) -> Files:
    """The first file, with other fields."""
    tree = yaml.safe_load(files[CONFIG] or b"")
    return {**files, CONFIG: yaml.safe_dump({**tree, **fields}).encode()}


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("again", [(), ("a",), ("b",), ("b", "a")])
def test_two_clusters_that_end_in_any_order_leave_what_was_there(first: str, again: tuple[str, ...]) -> None:
    before: Files = {CONFIG: a_kubeconfig("prod", current="prod")}
    files = before
    for each in ("a", "b", *again):
        files = up(files, each)
    second = "b" if first == "a" else "a"

    files = down(files, first)
    assert current(files) == f"protokube-{second}" or again[-1:] == ("",)
    files = down(files, second)

    assert yaml.safe_load(files[CONFIG] or b"") == yaml.safe_load(before[CONFIG] or b"")


def test_a_context_that_the_user_chose_meanwhile_stays_current() -> None:
    files = changed(up({CONFIG: a_kubeconfig("prod", "staging", current="prod")}), **{"current-context": "staging"})

    assert current(down(files)) == "staging"


def test_a_former_context_that_is_gone_does_not_return() -> None:
    files = up({CONFIG: a_kubeconfig("prod", "staging", current="prod")})
    tree = yaml.safe_load(files[CONFIG] or b"")
    contexts = [each for each in tree["contexts"] if each["name"] != "prod"]

    assert current(down(changed(files, contexts=contexts))) == ""


def test_a_context_of_the_users_own_that_uses_our_cluster_is_current_no_more_and_stays() -> None:
    files = up({CONFIG: a_kubeconfig("prod", current="prod")})
    tree = yaml.safe_load(files[CONFIG] or b"")
    mine = {"name": "mine", "context": {"cluster": "protokube-dev", "user": "prod-user"}}
    files = down(changed(files, contexts=[*tree["contexts"], mine], **{"current-context": "mine"}))

    assert current(files) == "prod"
    assert mine in yaml.safe_load(files[CONFIG] or b"")["contexts"]


def test_without_a_current_context_before_there_is_none_after() -> None:
    assert current(down(up({CONFIG: a_kubeconfig("prod")}))) == ""
    assert current(down(up({CONFIG: None}))) == ""


def test_what_the_user_did_not_switch_to_is_taken_out_quietly() -> None:
    files = down(up({CONFIG: a_kubeconfig("prod", current="prod")}, switch=False))

    assert (current(files), marks(files.values())) == ("prod", 0)


def test_a_former_context_in_another_file_returns_by_itself() -> None:
    before: Files = {CONFIG: a_kubeconfig("prod"), SECOND: a_kubeconfig("staging", current="staging")}
    files = up(before)
    assert (current(files), files[SECOND]) == ("protokube-dev", before[SECOND])

    files = down(files)
    assert (current(files), files[SECOND]) == ("staging", before[SECOND])
    assert yaml.safe_load(files[CONFIG] or b"")["current-context"] == ""


def test_an_entry_of_somebody_else_that_hides_ours_does_not_keep_ours() -> None:
    files = up({CONFIG: None, SECOND: b""})
    hidden: Files = {CONFIG: yaml.safe_dump(a_tree("protokube-dev", current="protokube-dev")).encode(), **files}
    hidden[CONFIG] = yaml.safe_dump(a_tree("protokube-dev", current="protokube-dev")).encode()
    after = down(hidden)

    assert marks(after.values()) == 0
    assert after[CONFIG] == hidden[CONFIG]
    assert entries_of_others(after.values()) == entries_of_others(hidden.values())


def test_of_a_cluster_that_was_never_merged_nothing_is_taken() -> None:
    files = up({CONFIG: a_kubeconfig("prod", current="prod")})

    assert down(files, "other") == files
