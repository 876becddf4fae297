"""kubectl itself, beside us: it writes the same file of KUBECONFIG, reads what we wrote, and respects our lock."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from builders.kubeconfigs import a_kubeconfig, an_access, an_owner
from protokube.binaries.kubernetes import find
from protokube.errors import Refused
from protokube.local.contexts import files, user_kubeconfig
from protokube.local.contexts.person import Person, files_of
from protokube.local.contexts.user_kubeconfig import Place


def kubectl(folder: Path, variable: str, *words: str) -> subprocess.CompletedProcess[str]:
    """In this folder, which is its home, too."""
    found = find(None)
    assert found is not None, "scripts/kubernetes brings Kubernetes here"
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], **({"KUBECONFIG": variable} if variable else {})}
    command = [str(found.folder / "kubectl"), "config", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def place(folder: Path, variable: str) -> Place:
    me = Person(uid=os.geteuid(), gid=os.getegid(), groups=(), home=str(folder), name="me")
    return Place(person=me, paths=files_of(me, {"KUBECONFIG": variable}, str(folder)))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


@pytest.mark.parametrize(
    ("variable", "there"),
    [
        ("", ()), ("", (".kube/config",)), ("a", ()), ("a:b", ()), ("a:b", ("b",)), ("a:b", ("a", "b")),
        ("a:b", ("a",)), (":a::b:", ("b",)), ("b:a:b", ("a", "b")), ("sub/a", ()), ("./a:b", ("a",)), ("~/a", ()),
        ("link:b", ("b", "real")), ("link", ()),
    ],
)  # fmt: skip
def test_a_new_context_goes_into_the_file_that_kubectl_would_write(
    tmp_path: Path, variable: str, there: tuple[str, ...]
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for name in there:
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).write_bytes(a_kubeconfig(f"in-{Path(name).name}"))
    ours.mkdir(exist_ok=True)
    (ours / "link").symlink_to("real")
    shutil.copytree(ours, theirs, symlinks=True)
    before = contents(ours)

    user_kubeconfig.merge(place(ours, variable), an_access(), switch=False)
    done = kubectl(theirs, variable, "set-context", "new", "--cluster=x")

    assert done.returncode == 0, done.stderr
    changed = [{name for name, data in contents(each).items() if before.get(name) != data} for each in (ours, theirs)]
    assert changed[0] == changed[1]
    assert (ours / "link").is_symlink()


def test_kubectl_sees_the_context_and_after_its_own_changes_we_find_ours(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(a_kubeconfig("prod", current="prod"))
    user_kubeconfig.merge(place(tmp_path, "a:b"), an_access(), switch=True)
    assert kubectl(tmp_path, "a:b", "current-context").stdout == "protokube-dev\n"

    for words in (["set-context", "own", "--cluster=x"], ["rename-context", "protokube-dev", "mine"],
                  ["set", "preferences.colors", "true"], ["delete-context", "own"]):  # fmt: skip
        assert kubectl(tmp_path, "a:b", *words).returncode == 0
    again = user_kubeconfig.merge(place(tmp_path, "a:b"), an_access(), switch=True)
    gone = user_kubeconfig.remove(place(tmp_path, "a:b"), an_owner())

    assert (again[0].context, again[1]) == ("mine", False)
    assert gone.contexts == ("mine",)
    assert kubectl(tmp_path, "a:b", "get-contexts", "-o", "name").stdout == "prod\n"
    assert kubectl(tmp_path, "a:b", "current-context").stdout == "prod\n"


def test_the_locks_of_both_are_respected_by_both(tmp_path: Path) -> None:
    config = tmp_path / "a"
    config.write_bytes(a_kubeconfig("prod", current="prod"))
    before = config.read_bytes()

    with files.locked([str(config)], patience=1):
        refused = kubectl(tmp_path, "a", "use-context", "prod-2")
        locked = kubectl(tmp_path, "a", "set-context", "new", "--cluster=x")
        with pytest.raises(Refused, match="is locked"):
            user_kubeconfig.merge(place(tmp_path, "a"), an_access(), switch=True, patience=0.1)

    assert (refused.returncode, locked.returncode) == (1, 1)
    assert "a.lock: file exists" in locked.stderr
    assert config.read_bytes() == before
