"""From settings to the form one version of one component wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from builders.config import a_draft, a_group, a_ledger, completed, kubelet_flags, problems, the_problem, warnings
from protokube.config.draft import Origin
from protokube.config.flags import FlagTable, flag_table
from protokube.config.render.settings import NEEDED, Form, put, render
from protokube.errors import Where
from protokube.spec.components.kubelet import Kubelet
from protokube.spec.decode import Tree
from protokube.spec.fields import duration, quantity, setting, spec_field
from protokube.spec.version import OLDEST, Version

V = Version(1, 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    deep: bool | None = setting(flag="deep", file="inner.deep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component with one setting of every kind."""

    both: int | None = setting(flag="both", file="both")
    flag_only: str | None = setting(flag="flag-only")
    file_only: str | None = setting(file="a.file.only")
    newer: str | None = setting(flag="newer", file="newer", since="1.31")
    gone: str | None = setting(flag="gone", file="gone", until="1.30")
    new_entry: str | None = setting(file="newEntry", since="1.31")
    repeated: list[str] | None = setting(flag="repeated", repeat=True)
    joined: list[str] | None = setting(flag="joined")
    shaped: str | None = setting(flag="shaped", file="shaped", form="words")
    amount: str | None = setting(flag="amount", check=quantity)
    wait: str | None = setting(flag="wait", check=duration)
    inner: Inner | None = spec_field()
    nothing: str | None = spec_field("Neither flag nor entry")
    extra_flags: dict[str, Any] | None = spec_field()


FLAGS = ("both", "flag-only", "newer", "gone", "repeated", "joined", "shaped", "amount", "wait", "deep", "spare", "old")


def a_table(*names: str, perhaps: dict[str, str] | None = None) -> FlagTable:
    listed: dict[str, Tree] = {name: {"deprecated": True} if name == "old" else {} for name in names or FLAGS}
    return FlagTable("thing", "1.30", listed, perhaps or {})


def form_of(tree: Tree, table: FlagTable | None = None, *, has_file: bool = True) -> Form:
    return render(Component, a_draft(tree, path="thing"), table or a_table(), V, has_file=has_file)


def test_a_setting_goes_to_the_file_where_there_is_one_and_to_a_flag_elsewhere() -> None:
    tree: Tree = {"both": 0, "flagOnly": "", "fileOnly": "x", "inner": {"deep": False}, "nothing": "y"}

    with_file = form_of(tree)
    without = form_of({name: value for name, value in tree.items() if name != "fileOnly"}, has_file=False)

    assert with_file.file == {"both": 0, "a": {"file": {"only": "x"}}, "inner": {"deep": False}}
    assert with_file.flags == {"flag-only": ""}
    assert without.file == {}
    assert without.flags == {"both": 0, "deep": False, "flag-only": ""}


def test_an_entry_the_file_does_not_have_yet_or_any_more_is_a_flag() -> None:
    form = form_of({"newer": "a", "gone": "b"})

    assert (form.flags, form.file) == ({"gone": "b", "newer": "a"}, {})


def test_flags_come_out_sorted_lists_joined_or_repeated_and_quantities_plain() -> None:
    form = form_of({"wait": "5m", "repeated": ["x", "y"], "joined": ["x", "y"], "amount": "1500m", "flagOnly": "t"})

    assert list(form.flags.items()) == [
        ("amount", 1.5),
        ("flag-only", "t"),
        ("joined", "x,y"),
        ("repeated", ["x", "y"]),
        ("wait", "5m"),
    ]


def test_text_takes_the_shape_the_file_wants_and_stays_text_as_a_flag() -> None:
    assert form_of({"shaped": "a,b"}).file == {"shaped": ["a", "b"]}
    assert form_of({"shaped": "a,b"}, has_file=False).flags == {"shaped": "a,b"}


def test_each_flag_and_entry_knows_the_setting_it_comes_from() -> None:
    draft = a_draft(
        {"fileOnly": "x", "flagOnly": "y", "inner": {"deep": True}, "extraFlags": {"spare": 1}}, path="thing"
    )
    render(Component, draft, a_table(), V, has_file=True)

    assert {path: origin.of for path, origin in draft.ledger.origins.items()} == {
        "thing.file.a.file.only": ("thing.fileOnly",),
        "thing.flags.flag-only": ("thing.flagOnly",),
        "thing.file.inner.deep": ("thing.inner.deep",),
        "thing.flags.spare": ("thing.extraFlags.spare",),
    }


def test_a_setting_the_version_cannot_take_is_a_problem_that_says_from_when_on_it_can() -> None:
    draft = a_draft({"newEntry": "x"}, a_ledger(thing__newEntry=7), "thing")
    render(Component, draft, a_table(), V, has_file=True)

    (problem,) = draft.ledger.problems
    assert problem.message == "thing 1.30 has no newEntry in its configuration file"
    assert problem.hint == "its configuration file has it since 1.31"
    assert problem.where == Where("spec.yaml", 7)


def test_a_flag_only_a_neighbour_lists_is_not_passed_and_the_neighbour_is_named() -> None:
    draft = a_draft({"flagOnly": "x"}, path="thing")
    form = render(Component, draft, a_table("both", perhaps={"flag-only": "1.28"}), V, has_file=True)

    assert form.flags == {}
    assert draft.ledger.problems[0].message == "thing 1.30 has no --flag-only, though 1.28 has"
    assert draft.ledger.problems[0].hint == "remove it from the spec"


def test_a_deprecated_flag_is_passed_where_nothing_else_serves_with_a_warning() -> None:
    table = FlagTable("thing", "1.30", {"flag-only": {"deprecated": True}}, {})
    draft = a_draft({"flagOnly": "x"}, path="thing")
    form = render(Component, draft, table, V, has_file=True)

    assert form.flags == {"flag-only": "x"}
    assert draft.ledger.warnings[0].message == "thing 1.30 has only the flag --flag-only for it, which is deprecated"


def test_flags_of_the_users_must_exist() -> None:
    draft = a_draft({"extraFlags": {"spare": [1, 2], "--old": True, "spaer": 3}}, path="thing")
    form = render(Component, draft, a_table(), V, has_file=True)

    assert form.flags == {"old": True, "spare": [1, 2]}
    assert [str(each) for each in draft.ledger.problems] == [
        "thing.extraFlags.spaer: thing 1.30 has no flag --spaer\n  hint: did you mean `spare`?"
    ]
    assert [str(each) for each in draft.ledger.warnings] == [
        "thing.extraFlags.--old: --old is deprecated in thing 1.30"
    ]


def test_a_flag_of_the_users_that_one_neighbour_lists_is_passed_with_a_warning() -> None:
    draft = a_draft({"extraFlags": {"half": 0}}, path="thing")
    form = render(Component, draft, a_table("both", perhaps={"half": "1.32"}), V, has_file=True)

    assert form.flags == {"half": 0}
    assert draft.ledger.warnings[0].message == (
        "thing 1.30 has no flag table; 1.32 lists --half, its other neighbour does not"
    )
    assert "--help" in draft.ledger.warnings[0].hint


@pytest.mark.parametrize(
    ("flag", "into", "field"),
    [
        ("both", "its configuration file", "thing.both"),
        ("newer", "this flag", "thing.newer"),
        ("deep", "its configuration file", "thing.inner.deep"),
        ("wait", "this flag", "thing.wait"),
    ],
)
def test_a_flag_with_a_field_of_its_own_is_said_there(flag: str, into: str, field: str) -> None:
    draft = a_draft({"extraFlags": {flag: "x"}}, path="thing")
    form = render(Component, draft, a_table(), V, has_file=True)

    assert form.flags == {}
    (problem,) = draft.ledger.problems
    assert (problem.message, problem.hint) == (f"there is a field for it, which sets {into}", f"set {field}")


def test_a_value_at_a_dotted_path_makes_the_mappings_on_the_way() -> None:
    tree: Tree = {"a": {"x": 1}}
    put(tree, "a.b.c", 0)
    put(tree, "d", False)

    assert tree == {"a": {"x": 1, "b": {"c": 0}}, "d": False}


def test_flags_that_old_versions_cannot_do_without_are_passed_though_no_table_is_sure_of_them() -> None:
    for minor in range(OLDEST.minor, 24):
        config = completed(kubernetesVersion=f"1.{minor}.0", kubelet={"taints": ["a=b:NoSchedule"]})
        arguments = kubelet_flags(config)
        assert arguments["container-runtime"] == "remote"
        assert ("register-with-taints" in arguments) == (minor < 23)
        assert ("register-node" in arguments) == (minor < 23)
        assert warnings(config) == {}


def test_what_is_needed_is_really_missing_from_some_table_or_it_need_not_be_listed() -> None:
    for (component, flag), (first, before) in NEEDED.items():
        tables = [flag_table(component, Version(1, minor)) for minor in range(first.minor, before.minor)]
        assert any(not table.lists(flag) or table.deprecated(flag) for table in tables), flag


def test_a_problem_of_all_kubelets_is_told_once_for_a_hundred_groups() -> None:
    groups = [a_group(f"g{index}") for index in range(100)]
    found = problems(*groups, kubernetesVersion="1.30.0", kubelet={"tlsCurvePreferences": [29]})

    assert list(found) == ["kubelet.tlsCurvePreferences"]
    assert found["kubelet.tlsCurvePreferences"].hint == "its configuration file has it since 1.36"


def test_a_warning_of_all_kubelets_is_told_once_for_a_hundred_groups() -> None:
    groups = [a_group(f"g{index}") for index in range(100)]
    config = completed(*groups, kubernetesVersion="1.28.0", kubelet={"podInfraContainerImage": "pause"})

    assert len(config.warnings) == 1


def test_a_flag_of_the_users_for_all_kubelets_reaches_each_and_a_wrong_one_is_told_once() -> None:
    config = completed(kubelet={"extraFlags": {"log-flush-frequency": "10s"}})
    wrong = the_problem(a_group("a"), a_group("b"), kubelet={"extraFlags": {"log-flush-frequencies": "10s"}})

    assert all(kubelet_flags(config, name)["log-flush-frequency"] == "10s" for name in config.rendered if name)
    assert wrong.path == "kubelet.extraFlags.log-flush-frequencies"


def test_the_entries_of_a_kubelet_are_rendered_for_the_version_they_are_for() -> None:
    draft = a_draft({"podLogsDir": "/x", "registerNode": True}, path="k")
    old = render(Kubelet, draft, flag_table("kubelet", Version(1, 20)), Version(1, 20), has_file=True)
    new = render(Kubelet, draft, flag_table("kubelet", Version(1, 30)), Version(1, 30), has_file=True)

    assert old.flags == {"register-node": True}
    assert new.file == {"podLogsDir": "/x", "registerNode": True}
    assert draft.ledger.origins["k.file.podLogsDir"] == Origin("written to its file", ("k.podLogsDir",))
