"""Random lists of tasks on random machines: one run makes everything true that may be, and a second changes nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from builders.nodeup import DEBIAN, OURS, Heard, a_root
from builders.nodeup_machine import tree_of
from protokube.nodeup.changes import Outcome, Result
from protokube.nodeup.engine.control import Control
from protokube.nodeup.order import WrongTasks, order
from protokube.nodeup.provision import Place, foresee, provision
from protokube.nodeup.values import Directory, File, Gone, Group, Link, Task, User

OWNER, GROUP = OURS
PATHS = ("/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f", "/g")
MODES = st.sampled_from([0o600, 0o644, 0o755, 0o700])
GOOD = (Result.CHANGED, Result.UNCHANGED)

paths = st.sampled_from(PATHS)
contents = st.sampled_from([b"", b"x", b"other"])
targets = st.sampled_from(["/a", "b", "../e", "/nowhere"])
tasks = st.lists(
    st.one_of(
        st.builds(File, path=paths, content=contents, mode=MODES, owner=st.just(OWNER), group=st.just(GROUP),
                  keep=st.booleans()),
        st.builds(Directory, path=paths, mode=MODES, owner=st.just(OWNER), group=st.just(GROUP)),
        st.builds(Link, path=paths, target=targets),
        st.builds(Gone, path=paths),
        st.builds(User, name=st.sampled_from(["etcd", "web"]), uid=st.sampled_from([None, 300, 65534]),
                  group=st.sampled_from(["", "ssl", "root"])),
        st.builds(Group, name=st.sampled_from(["ssl", "etcd"]), gid=st.sampled_from([None, 400, 0])),
    ),
    max_size=8, unique_by=lambda task: task.about,
)  # fmt: skip
kinds = st.sampled_from(["file", "directory", "link", "draft"])
states = st.lists(st.tuples(paths, kinds, contents, MODES, targets), max_size=6)


def put(root: Path, state: Sequence[tuple[str, str, bytes, int, str]]) -> None:
    """What the machine has already, as far as it fits together."""
    for path, kind, content, mode, target in state:
        place = root / path[1:]
        if not place.parent.is_dir() or place.parent.is_symlink() or os.path.lexists(place):
            continue
        match kind:
            case "directory":
                place.mkdir()
                place.chmod(mode | 0o700)
            case "link":
                place.symlink_to(target)
            case "draft":
                place.with_name(f".{place.name}.nodeup-draft").write_bytes(content)
            case _:
                place.write_bytes(content)
                place.chmod(mode)


@contextmanager
def a_place(state: Sequence[tuple[str, str, bytes, int, str]]) -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="pk-nodeup-"))
    try:
        root = a_root(folder / "root").root
        put(root, state)
        yield Place(root=root, run=folder / "run")
    finally:
        shutil.rmtree(folder)


def run(wanted: Sequence[Task], place: Place) -> dict[str, Outcome]:
    trace = provision(lambda: (DEBIAN, tuple(wanted)), place, Heard(), Control())
    return {outcome.key: outcome for outcome in trace.outcomes}


@given(wanted=tasks, state=states)
def test_one_run_makes_true_what_may_be_and_a_second_changes_nothing(
    wanted: list[Task], state: list[tuple[str, str, bytes, int, str]]
) -> None:
    try:
        graph = order(wanted)
    except WrongTasks:
        return
    with a_place(state) as place:
        before = tree_of(place.root, times=True)
        foresee(lambda: (DEBIAN, tuple(wanted)), place, Heard(), Control())
        assert tree_of(place.root, times=True) == before

        first = run(wanted, place)

        assert set(first) == {task.key for task in wanted}
        for task in graph.tasks:
            needs_bad = any(first[need].result not in GOOD for need in graph.needs[task.key])
            assert (first[task.key].result is Result.BLOCKED) == needs_bad
            assert "a bug in protokube" not in first[task.key].why
        after = tree_of(place.root, times=True)
        if any(kind == "link" for _, kind, *_ in state) and any(each.result not in GOOD for each in first.values()):
            return  # by a link of the machine two tasks may be about one file, and the next run gets further
        second = run(wanted, place)
        assert tree_of(place.root, times=True) == after
        for key, outcome in first.items():
            want = Result.UNCHANGED if outcome.result in GOOD else outcome.result
            assert second[key].result is want, (key, outcome, second[key])
        declared = {task.about[1:] for task in wanted}
        strangers = {
            name
            for name in before
            if name not in declared and not name.startswith("etc") and ".nodeup-draft" not in name
        }
        changed = {name for name in strangers if after.get(name, (0,) * 4)[:4] != before[name][:4]}
        assert changed == set()
