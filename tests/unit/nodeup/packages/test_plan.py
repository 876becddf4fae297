from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused
from protokube.nodeup.packages.names import Asked, asked
from protokube.nodeup.packages.plan import plan
from protokube.nodeup.packages.status import Package

STATES = st.sampled_from(
    ["not-installed", "config-files", "half-installed", "unpacked", "half-configured", "installed"]
)
VERSIONS = st.sampled_from(["1.0", "1.1", "2.0"])
NAMES = ("a", "b", "c")


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, Package], tuple[Asked, ...], frozenset[str]]:
    packages = {
        name: Package(
            name=name, version=draw(VERSIONS), state=draw(STATES), held=draw(st.booleans()), damaged=draw(st.booleans())
        )
        for name in draw(st.sets(st.sampled_from(NAMES)))
    }
    words = [
        f"{name}{draw(st.sampled_from(['', '=1.0', '=1.*', '=2.0']))}" for name in draw(st.sets(st.sampled_from(NAMES)))
    ]
    return packages, asked(words), draw(st.frozensets(st.sampled_from(NAMES)))


def carried_out(packages: dict[str, Package], wanted: tuple[Asked, ...], hold: tuple[str, ...]) -> dict[str, Package]:
    """What a package manager makes of it."""
    after = dict(packages)
    for each in wanted:
        version = each.version.replace("*", "1") or "2.0"
        after[each.name] = Package(name=each.name, version=version, state="installed", held=each.name in hold)
    for name in hold:
        seen = after[name]
        after[name] = Package(name=name, version=seen.version, state=seen.state, held=True)
    return after


@given(worlds())
def test_after_a_plan_was_carried_out_there_is_nothing_left_to_do(
    world: tuple[dict[str, Package], tuple[Asked, ...], frozenset[str]],
) -> None:
    packages, wanted, ours = world
    try:
        todo = plan(packages, wanted, ours)
    except Refused:
        held = [each for each in wanted if each.name in packages and packages[each.name].held and each.name not in ours]
        assert any(not each.accepts(packages[each.name].version) for each in held)
        return
    holds = {name for name, each in packages.items() if each.held} - set(todo.unhold) | set(todo.hold)

    after = carried_out(packages, todo.install, tuple(holds & {*packages, *(each.name for each in wanted)}))

    assert plan(after, wanted, ours | set(todo.hold)).changes == ()
    assert bool(todo.changes) == bool(todo.install or todo.hold or todo.unhold)
    assert set(todo.unhold) <= ours


def test_what_is_installed_in_the_wanted_version_and_held_is_left_alone() -> None:
    packages = {"a": Package(name="a", version="1.0", state="installed", held=True)}

    assert plan(packages, asked(["a=1.*"]), ()).changes == ()


def test_only_our_own_hold_gives_way() -> None:
    packages = {"a": Package(name="a", version="1.0", state="installed", held=True)}

    todo = plan(packages, asked(["a=2.0"]), {"a"})

    assert (todo.unhold, todo.hold, [str(each) for each in todo.install]) == (("a",), ("a",), ["a=2.0"])
    with pytest.raises(Refused, match=r"a is held at 1\.0 by somebody else"):
        plan(packages, asked(["a=2.0"]), ())


@pytest.mark.parametrize("word", ["", "-y", "a-", "a b", "a=", "a;b", "../a", "a=1 2", "--reinstall", "a\n"])
def test_a_word_that_a_package_manager_takes_for_something_else_is_refused(word: str) -> None:
    with pytest.raises(Refused, match="is no name of a package"):
        asked([word])


def test_a_package_in_two_versions_is_refused_and_one_named_twice_counts_once() -> None:
    assert asked(["b", "a=1", "b"]) == (Asked("a", "1"), Asked("b"))
    with pytest.raises(Refused, match="two versions"):
        asked(["a=1", "a=2"])


def test_only_what_is_to_be_held_is_held() -> None:
    todo = plan({}, asked(("a", "b")), frozenset(), ("b",))

    assert ([each.name for each in todo.install], todo.hold) == (["a", "b"], ("b",))


def test_a_hold_of_the_users_stays_where_none_is_asked_for() -> None:
    observed = {"a": Package(name="a", version="1.0", state="installed", held=True)}

    assert plan(observed, asked(("a",)), frozenset(), ()).changes == ()
