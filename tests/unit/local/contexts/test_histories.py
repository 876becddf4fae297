"""Random sequences of `up`, `down` and a user's own edits: what must hold after each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders.kubeconfigs import CONFIG, a_kubeconfig, an_access, an_owner, entries_of_others, is_ours, marks
from protokube import fast_yaml
from protokube.local.contexts import document
from protokube.local.contexts.merging import plan_merge
from protokube.local.contexts.removing import plan_removal
from protokube.local.contexts.user_kubeconfig import changes_of
from protokube.local.contexts.values import CONTEXTS

SECOND = "/home/jane/second"
CLUSTERS = ("a", "b", "c")
STEPS = st.tuples(
    st.sampled_from(("up", "up", "up", "stay", "down", "down", "use", "rename", "delete", "add", "namespace", "unset")),
    st.integers(0, 5),
)


@dataclass
class Home:
    """The files, changed by us as text and by the user as a tool that loads and writes YAML would do it."""

    files: dict[str, bytes | None]
    ours: dict[str, str] = field(default_factory=dict)
    """The contexts of the clusters that are up."""
    added: int = 0

    def step(self, what: str, number: int) -> None:
        cluster = CLUSTERS[number % len(CLUSTERS)]
        if what in ("up", "stay"):
            self.up(cluster, switch=what == "up", port=6000 + number)
        elif what == "down":
            self.down(cluster)
        else:
            self.edit(what, number)

    def up(self, cluster: str, *, switch: bool, port: int) -> None:
        before, valid, others = self.current(), self.is_valid(), entries_of_others(self.files.values())
        plan = plan_merge(self.chain(), an_access(cluster, port=port), switch=switch)
        self.write(plan.edits, current_last=True)

        assert entries_of_others(self.files.values()) == others
        assert self.current() == (plan.context if switch else before)
        assert self.is_valid() or not (valid or switch)
        assert self.server(plan.context) == f"https://127.0.0.1:{port}"
        assert plan_merge(self.chain(), an_access(cluster, port=port), switch=switch).edits == ()
        self.ours[cluster] = plan.context

    def down(self, cluster: str) -> None:
        before, valid, others = self.current(), self.is_valid(), entries_of_others(self.files.values())
        plan = plan_removal(self.chain(), an_owner(cluster))
        kept = {str(tree.get("current-context") or "") for tree in self.trees()} - set(plan.contexts)
        self.write(plan.edits, current_last=False)
        self.ours.pop(cluster, None)

        assert entries_of_others(self.files.values()) == others
        # What ours hid in another file stays, even if the user has deleted or renamed that context since.
        assert self.is_valid() or not valid or not self.current() or self.current() in kept
        assert self.current() == before or before not in self.contexts() or not valid
        assert not any(f"/state/{cluster}".encode() in (data or b"") for data in self.files.values())
        assert plan_removal(self.chain(), an_owner(cluster)).edits == ()

    def edit(self, what: str, number: int) -> None:
        path = list(self.files)[number % len(self.files)]
        tree = fast_yaml.load(self.files[path] or b"") or {}
        listed: list[dict[str, Any]] = tree.setdefault(CONTEXTS, [])
        names = sorted(self.contexts())
        one = listed[number % len(listed)] if listed else None
        if what == "use" and names:
            tree["current-context"] = names[number % len(names)]
        elif what == "rename" and one:
            self.added += 1
            if tree.get("current-context") == one["name"]:
                tree["current-context"] = f"renamed-{self.added}"
            one["name"] = f"renamed-{self.added}"
        elif what == "delete" and one:
            listed.remove(one)
        elif what == "add":
            self.added += 1
            name = f"mine-{self.added}"
            tree.setdefault("clusters", []).append({"name": name, "cluster": {"server": f"https://{name}"}})
            tree.setdefault("users", []).append({"name": name, "user": {"token": name}})
            listed.append({"name": name, "context": {"cluster": name, "user": name}})
        elif what == "namespace" and one:
            one["context"]["namespace"] = f"n{number}"
        elif what == "unset":
            tree.pop("current-context", None)
        self.files[path] = fast_yaml.dump(tree).encode()

    def write(self, edits: Any, *, current_last: bool) -> None:
        """File by file. After a merge of the first of two files, the current context has its entry, too."""
        valid = self.is_valid()
        for change in changes_of(self.files, edits, current_last=current_last):
            self.files[change.path] = change.after
            assert self.is_valid() or not valid or not self.current() or not current_last

    def chain(self) -> list[Any]:
        return [document.read(path, data) for path, data in self.files.items()]

    def trees(self) -> list[dict[str, Any]]:
        return [fast_yaml.load(data or b"") or {} for data in self.files.values()]

    def contexts(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for tree in self.trees():
            for each in tree.get(CONTEXTS) or ():
                found.setdefault(each["name"], each["context"])
        return found

    def server(self, context: str) -> str:
        cluster = self.contexts()[context]["cluster"]
        listed = [each for tree in self.trees() for each in tree.get("clusters") or () if each["name"] == cluster]
        return str(listed[0]["cluster"]["server"])

    def current(self) -> str:
        return next((str(tree["current-context"]) for tree in self.trees() if tree.get("current-context")), "")

    def is_valid(self) -> bool:
        context = self.contexts().get(self.current())
        return context is not None and any(
            each["name"] == context["cluster"] for tree in self.trees() for each in tree.get("clusters") or ()
        )


DELETED_WHILE_HIDDEN = [("up", 0), ("add", 0), ("up", 5), ("use", 5), ("up", 0), ("delete", 0)]


@settings(max_examples=60)
@given(steps=st.lists(STEPS, max_size=16), second=st.booleans(), empty=st.booleans())
@example(steps=DELETED_WHILE_HIDDEN, second=True, empty=True)
def test_entries_of_others_never_change_and_the_current_context_always_exists(
    steps: list[tuple[str, int]], second: bool, empty: bool
) -> None:
    home = Home({CONFIG: None if empty else a_kubeconfig("prod", "staging", current="prod")})
    if second:
        home.files[SECOND] = a_kubeconfig("lab")
    for what, number in steps:
        home.step(what, number)
    for cluster in CLUSTERS:
        home.down(cluster)

    assert marks(home.files.values()) == 0
    assert not any(is_ours(CONTEXTS, each) for tree in home.trees() for each in tree.get(CONTEXTS) or ())


@settings(max_examples=25)
@given(steps=st.lists(st.tuples(st.sampled_from(("up", "down", "stay")), st.integers(0, 2)), max_size=14))
def test_without_edits_of_the_user_all_is_in_the_end_as_it_was(steps: list[tuple[str, int]]) -> None:
    home = Home({CONFIG: a_kubeconfig("prod", "staging", current="staging")})
    before = home.trees()
    for what, number in steps:
        home.step(what, number)
    for cluster in CLUSTERS:
        home.down(cluster)

    assert home.trees() == before
