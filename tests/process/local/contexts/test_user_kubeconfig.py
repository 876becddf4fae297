"""Merging into real files: locks, links, modes, and what is left if it cannot be done."""

from __future__ import annotations

import os
import resource
import signal
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from builders.kubeconfigs import a_kubeconfig, an_access, an_owner, entries_of_others, marks
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.local.contexts import child, files, user_kubeconfig
from protokube.local.contexts.person import Person
from protokube.local.contexts.user_kubeconfig import Place, changes_of

PATIENCE = 0.3


def place(*paths: Path) -> Place:
    me = Person(uid=os.geteuid(), gid=os.getegid(), groups=(), home="", name="me")
    return Place(person=me, paths=tuple(str(path) for path in paths))


def merge(*paths: Path, cluster: str = "dev", switch: bool = True) -> bool:
    return user_kubeconfig.merge(place(*paths), an_access(cluster), switch=switch, patience=PATIENCE)[1]


def remove(*paths: Path, cluster: str = "dev") -> None:
    user_kubeconfig.remove(place(*paths), an_owner(cluster), patience=PATIENCE)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config"
    file.write_bytes(a_kubeconfig("prod", current="prod"))
    return file


def test_a_missing_file_and_its_folder_are_created_for_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / ".kube" / "config"

    assert merge(file)
    assert yaml.safe_load(file.read_text())["current-context"] == "protokube-dev"
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert [each.name for each in file.parent.iterdir()] == ["config"]


def test_a_second_time_nothing_is_written(config: Path) -> None:
    assert merge(config)
    before = config.stat()

    assert not merge(config)
    assert (config.stat().st_ino, config.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o600, 0o600), (0o400, 0o400), (0o660, 0o600)])
def test_a_stricter_mode_stays_and_others_lose_their_access(config: Path, before: int, after: int) -> None:
    config.chmod(before)
    merge(config)

    assert mode(config) == after


def test_links_stay_links_and_the_file_behind_them_changes(config: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = config.rename(tmp_path / "dotfiles" / "kubeconfig")
    (tmp_path / "between").symlink_to("dotfiles/kubeconfig")
    config.symlink_to("between")
    merge(config)

    assert config.is_symlink()
    assert (tmp_path / "between").is_symlink()
    assert marks([real.read_bytes()]) == 3
    remove(config)
    assert entries_of_others([real.read_bytes()]) == entries_of_others([a_kubeconfig("prod", current="prod")])


@pytest.mark.parametrize("way", ["./config", "folder/config", "folder/link"])
def test_two_ways_to_one_file_have_one_lock(config: Path, tmp_path: Path, way: str) -> None:
    (tmp_path / "folder").symlink_to(".")
    (tmp_path / "link").symlink_to("folder/config")

    user_kubeconfig.merge(
        Place(person=place().person, paths=(f"{tmp_path}/{way}",)), an_access(), switch=True, patience=PATIENCE
    )

    assert marks([config.read_bytes()]) == 3
    assert not list(tmp_path.glob("*.lock"))


def test_a_link_to_a_missing_file_leads_to_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "config").symlink_to("dotfiles/kubeconfig")
    merge(tmp_path / "config")

    assert (tmp_path / "config").is_symlink()
    assert marks([(tmp_path / "dotfiles" / "kubeconfig").read_bytes()]) == 3


@pytest.mark.parametrize("real", [False, True])
def test_a_lock_that_stays_is_an_error_with_what_to_do_and_nothing_is_written(
    config: Path, tmp_path: Path, real: bool
) -> None:
    """kubectl locks the name that it was given: somebody else may have been given the one behind our link."""
    before = config.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(config)
    lock = Path(f"{config if real else link}.lock")
    lock.touch()

    with pytest.raises(Refused, match="is locked") as refused:
        merge(link)

    assert refused.value.hint == f"if no kubectl is at work, `rm {lock}`"
    assert str(lock) in refused.value.saw
    assert config.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == sorted([config, link, lock])


def test_a_lock_that_goes_is_waited_for(config: Path) -> None:
    lock = Path(f"{config}.lock")
    lock.touch()
    waiting = threading.Timer(0.1, lock.unlink)
    waiting.start()
    merged = user_kubeconfig.merge(place(config), an_access(), switch=True, patience=30)
    waiting.join()

    assert merged[1]
    assert not lock.exists()


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(config: Path) -> None:
    before = config.read_bytes()
    config.write_bytes(a_kubeconfig("prod", "staging", current="staging"))
    change = files.Change(path=str(config), before=before, after=b"")

    assert not files.swap([change])
    assert config.read_bytes() == a_kubeconfig("prod", "staging", current="staging")
    assert not Path(f"{config}.lock").exists()


def test_many_at_once_lose_nothing(config: Path) -> None:
    """As several `up` in several terminals: each finds its entries, and those of all others."""
    names = [f"c{number}" for number in range(6)]
    pids = []
    for name in names:
        if (pid := os.fork()) == 0:
            try:
                user_kubeconfig.merge(place(config), an_access(name), switch=True, patience=60)
                os._exit(0)
            finally:
                os._exit(1)
        pids.append(pid)

    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * len(names)
    tree = yaml.safe_load(config.read_text())
    assert {each["name"] for each in tree["contexts"]} == {"prod", *(f"protokube-{name}" for name in names)}
    for name in names:
        remove(config, cluster=name)
    assert yaml.safe_load(config.read_text()) == yaml.safe_load(a_kubeconfig("prod", current="prod"))


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop", "text", "large", "file as folder"])
def test_what_is_no_kubeconfig_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "config"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "device":
            file.symlink_to("/dev/null")
        case "loop":
            file.symlink_to(file)
        case "text":
            file.write_text("precious: [")
        case "large":
            file.write_bytes(b"#" * (files.LARGEST + 1))
        case _:
            (tmp_path / "config").write_text("")
            file = tmp_path / "config" / "config"
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(ProtokubeError) as refused:
        merge(file)

    assert "config" in refused.value.message
    assert sorted(tmp_path.rglob("*")) == before
    assert kind != "text" or file.read_text() == "precious: ["


def test_a_full_disk_leaves_the_file_and_no_lock(config: Path) -> None:
    """By a limit of the child's own on the size of what it writes."""

    before = config.read_bytes()

    def write() -> bool:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        return files.swap([files.Change(path=str(config), before=before, after=before * 2)])

    with pytest.raises(Refused):
        child.as_person(place(config).person, write)

    assert config.read_bytes() == before
    assert list(config.parent.iterdir()) == [config]


def test_a_home_that_hangs_is_given_up(config: Path) -> None:
    with pytest.raises(TryLater, match="could not be read or written") as raised:
        child.as_person(place(config).person, lambda: time.sleep(60), seconds=0.2)

    assert raised.value.saw == "no reply within 0.2 s"


def test_a_process_that_is_killed_while_it_writes_is_not_called_late(config: Path) -> None:
    with pytest.raises(TryLater, match="could not be read or written") as raised:
        child.as_person(place(config).person, lambda: os.kill(os.getpid(), signal.SIGKILL))

    assert raised.value.saw == "the process that does it ended without a reply"


def test_of_two_files_each_is_written_once(config: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.write_bytes(a_kubeconfig("lab"))
    merge(second)
    merge(config, second, cluster="dev")

    assert marks([config.read_bytes()]) == 0
    assert yaml.safe_load(config.read_text())["current-context"] == "protokube-dev"
    remove(config, second)
    assert yaml.safe_load(config.read_text()) == yaml.safe_load(a_kubeconfig("prod", current="prod"))
    assert marks([second.read_bytes()]) == 0
    assert changes_of({}, (), current_last=True) == []


@pytest.mark.parametrize("first", ["config", "link"])
def test_a_file_that_is_named_twice_is_one_file(config: Path, tmp_path: Path, first: str) -> None:
    """As with KUBECONFIG=~/.kube/config:~/dotfiles/config, where one is a link to the other."""
    (tmp_path / "link").symlink_to("config")
    (tmp_path / "lab").write_bytes(a_kubeconfig("lab", current="lab"))
    names = (tmp_path / first, tmp_path / "lab", tmp_path / ("link" if first == "config" else "config"))

    merge(*names)
    assert (marks([config.read_bytes()]), marks([(tmp_path / "lab").read_bytes()])) == (3, 0), "in the first file"
    remove(*names)

    assert config.read_bytes() == a_kubeconfig("prod", current="prod")
    assert (tmp_path / "lab").read_bytes() == a_kubeconfig("lab", current="lab")
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("what", [merge, remove])
def test_a_file_that_kubectl_is_just_writing_is_read_when_it_is_complete(
    config: Path, what: Callable[[Path], object]
) -> None:
    """kubectl takes the lock, empties the file, and writes it."""
    merge(config)
    before, lock = config.read_bytes(), Path(f"{config}.lock")
    lock.touch()
    config.write_bytes(before[:40])

    def complete() -> None:
        config.write_bytes(before)
        lock.unlink()

    writing = threading.Timer(0.2, complete)
    writing.start()
    what(config)
    writing.join()

    assert marks([config.read_bytes()]) == (3 if what is merge else 0)
    assert entries_of_others([config.read_bytes()]) == entries_of_others([a_kubeconfig("prod", current="prod")])


def test_a_lock_that_stays_hinders_nobody_who_has_nothing_to_write(config: Path) -> None:
    merge(config)
    Path(f"{config}.lock").touch()

    assert not merge(config)
