"""`protokube rollout`: what it says of a cluster, how it is followed, and what it cannot return to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.command import Call
from builders.revisions import a_revision, keep
from builders.view import CLUSTER, ShortFolder, a_view, write_state
from protokube.cli.rollout import earlier
from protokube.cli.shared.completing import complete_here, complete_revision
from protokube.cli.shared.progress import Progress
from protokube.cli.shared.rollout import confirm, follow, groups_of, stopped
from protokube.cli.shared.templates import KUBELETS_FOLLOW
from protokube.cli.shared.upgrade import Target, make_revision
from protokube.cli.up.change import find_former
from protokube.cli.up.choosing import default_spec
from protokube.errors import ExitCode, InvalidRequest, Refused, TryLater
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.launch.plan import ChangePlan
from protokube.launch.revisions import Revision, change_rollout, in_force, put_in_force, read_rollout
from protokube.launch.rollout import Failure, Rollout, State, Turn
from protokube.spec.parse import read
from protokube.store import Store, layout
from protokube.store.file import FileStore
from protokube.store.memory import MemoryStore

FAILURE = Failure(machine="i-1", name="master-1", revision=2, text="main/b: it does not run after 60 s")
ETCD = "3.6.1"
SPEC, ALONE = (default_spec(CLUSTER, masters, False) for masters in (3, 1))


def quota(text: str) -> str:
    """The spec with another setting of etcd."""
    trees = list(yaml.safe_load_all(text))
    clusters = trees[0]["spec"].setdefault("etcdClusters", [{"name": "main"}])
    clusters[0]["quotaBackendBytes"] = 4 * 2**30
    return str(yaml.safe_dump_all(trees))


def of_spec(number: int, text: str = SPEC, **fields: Any) -> Revision:
    config = complete_here(read([("dev.yaml", text)]), ETCD, "")
    given = {"spec": text, "source": "dev.yaml", "etcd": ETCD, **fields}
    return a_revision(number, from_config(config, kubernetes=False), **given)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


@pytest.fixture
def store(state: Path) -> FileStore:
    """Of a cluster whose cloud does not run; no revision yet."""
    return FileStore(write_state(state, a_view()).store)


def put(store: Store, *made: Revision) -> None:
    """One after the other; the last one is being rolled out, all before were."""
    keep(store, *made)
    for each in made:
        if read_rollout(store, CLUSTER) is not None:
            change_rollout(store, CLUSTER, lambda known: replace(known, state=State.DONE))
        put_in_force(store, CLUSTER, each, running=True)


def change(store: Store, **fields: Any) -> None:
    change_rollout(store, CLUSTER, lambda known: replace(known, **fields))


# Status and history.


@pytest.mark.parametrize("command", [("status",), ("history",), ("undo",)])
def test_without_any_cluster_the_way_to_one_is_said(call: Call, state: Path, command: tuple[str, ...]) -> None:
    answer = call("rollout", *command)

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert answer.err.startswith("error: there is no local cluster on this machine\n")


@pytest.mark.parametrize("command", [("status",), ("history",), ("undo",)])
def test_a_cluster_without_revisions_says_so(call: Call, store: FileStore, command: tuple[str, ...]) -> None:
    answer = call("rollout", *command)

    assert (answer.code, answer.out) == (ExitCode.REFUSED, "")
    assert f"{CLUSTER} has no revisions yet" in answer.err
    assert "protokube up" in answer.err


@pytest.mark.parametrize("command", [("status",), ("history",), ("undo",)])
def test_a_record_that_cannot_be_read_is_said_and_not_repaired(
    call: Call, store: FileStore, command: tuple[str, ...]
) -> None:
    store.put(layout.rollout(CLUSTER), b"{}")
    answer = call("rollout", *command)

    assert answer.code == ExitCode.REFUSED
    assert "cannot be read" in answer.err
    assert store.read(layout.rollout(CLUSTER)).data == b"{}"


def test_the_history_lists_all_revisions(call: Call, store: FileStore) -> None:
    put(store, of_spec(1), of_spec(2), of_spec(3, note="as revision 1"))
    answer = call("rollout", "history")

    assert answer.code == ExitCode.OK
    assert [line.split()[0] for line in answer.out.splitlines()] == ["REVISION", "1", "2", "3"]
    assert answer.out.splitlines()[3].split()[1] == "*"
    assert answer.out.splitlines()[3].endswith("as revision 1")


def test_the_history_as_data(call: Call, store: FileStore) -> None:
    put(store, of_spec(1), of_spec(2))
    tree = json.loads(call("rollout", "history", "-o", "json").out)

    assert [(each["number"], each["inForce"], each["source"]) for each in tree] == [
        (1, False, "dev.yaml"),
        (2, True, "dev.yaml"),
    ]


def test_a_damaged_revision_does_not_hide_the_others(call: Call, store: FileStore) -> None:
    put(store, of_spec(1), of_spec(2))
    store.put(layout.revision(CLUSTER, 1), b"{}")
    answer = call("rollout", "history")

    assert (answer.code, len(answer.out.splitlines())) == (ExitCode.OK, 2)


# Undo.


@pytest.fixture
def memory() -> MemoryStore:
    return MemoryStore("undo")


def test_undo_returns_to_the_last_revision_that_all_masters_ran(memory: MemoryStore) -> None:
    keep(memory, *(of_spec(number) for number in (1, 2, 3)))

    assert earlier(memory, CLUSTER, Rollout(wanted=3, before=2), None).number == 2
    assert earlier(memory, CLUSTER, Rollout(wanted=3, before=1, state=State.STOPPED), None).number == 1
    assert earlier(memory, CLUSTER, Rollout(wanted=3, before=2), 1).number == 1


@pytest.mark.parametrize("before", [0, 1])
def test_undo_with_nothing_before_says_where_to_look(memory: MemoryStore, before: int) -> None:
    keep(memory, of_spec(1))

    with pytest.raises(InvalidRequest, match="there is no earlier revision") as error:
        earlier(memory, CLUSTER, Rollout(wanted=1, before=before, state=State.DONE), None)
    assert "rollout history" in error.value.hint


def test_undo_to_a_revision_that_does_not_exist_lists_those_that_do(memory: MemoryStore) -> None:
    keep(memory, of_spec(1), of_spec(2))

    with pytest.raises(InvalidRequest, match="there is no revision 7") as error:
        earlier(memory, CLUSTER, Rollout(wanted=2, before=1), 7)
    assert error.value.want == "1, 2"


def test_undo_to_a_revision_that_is_damaged_is_refused(memory: MemoryStore) -> None:
    keep(memory, of_spec(2))
    memory.put(layout.revision(CLUSTER, 1), b"{}")

    with pytest.raises(InvalidRequest, match="this is no revision"):
        earlier(memory, CLUSTER, Rollout(wanted=2, before=1), None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((), "there is no earlier revision"), (("--to", "7"), "there is no revision 7"), (("--to", "0"), "--to")],
)
def test_an_undo_that_cannot_be_is_an_invalid_request(
    call: Call, store: FileStore, arguments: tuple[str, ...], says: str
) -> None:
    put(store, of_spec(1))
    answer = call("rollout", "undo", *arguments)

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert says in answer.err


def test_an_undo_shows_what_differs_and_a_dry_run_writes_nothing(call: Call, store: FileStore) -> None:
    put(store, of_spec(1), of_spec(2, quota(SPEC)))
    before = {path: store.read(path).data for path in store.list_paths()}
    answer = call("rollout", "undo", "--dry-run")

    assert answer.code == ExitCode.OK, answer.err
    assert f"{CLUSTER}: revision 2 would change to 3" in answer.out
    assert "quotaBackendBytes" in answer.out
    assert "etcd main" in answer.out
    assert {path: store.read(path).data for path in store.list_paths()} == before


def test_an_undo_of_the_only_master_asks_first_and_writes_nothing(call: Call, store: FileStore) -> None:
    put(store, of_spec(1, ALONE), of_spec(2, quota(ALONE)))
    before = {path: store.read(path).data for path in store.list_paths()}
    answer = call("rollout", "undo")

    assert answer.code == ExitCode.REFUSED
    assert "has one master: while it restarts etcd main, nothing answers" in answer.err
    assert {path: store.read(path).data for path in store.list_paths()} == before


def test_an_undo_to_other_members_is_refused(call: Call, store: FileStore) -> None:
    put(store, of_spec(1, ALONE), of_spec(2))
    answer = call("rollout", "undo")

    assert answer.code == ExitCode.REFUSED
    assert "revision 1 cannot be returned to" in answer.err


def test_an_undo_to_a_stage_whose_spec_its_etcd_refuses_says_what_to_correct(call: Call, store: FileStore) -> None:
    refused = quota(SPEC).replace("quotaBackendBytes:", "extraFlags: {enable-v2: 'true'}\n    quotaBackendBytes:")
    put(store, of_spec(1, spec=refused), of_spec(2, quota(SPEC)))
    answer = call("rollout", "undo")

    assert answer.code == ExitCode.REFUSED
    assert f"revision 1 cannot be returned to: its spec does not go with etcd {ETCD}" in answer.err
    assert "run `up` with it" in answer.err


def test_an_undo_that_would_bring_kubelets_back_is_refused_before_anything_is_written(
    call: Call, store: FileStore
) -> None:
    """Kubelets were being added, and that was undone: only `up` has hosts for them."""
    plain = of_spec(1)
    put(store, plain)
    node = a_revision(2, replace(plain.master, kubelet_kubeconfig="/kubeconfig"), spec=SPEC, etcd=ETCD)
    keep(store, node, of_spec(3))
    put_in_force(store, CLUSTER, node, running=True)
    put_in_force(store, CLUSTER, of_spec(3), running=True)
    before = {path: store.read(path).data for path in store.list_paths()}

    for words in ((), ("--dry-run",)):
        answer = call("rollout", "undo", "--to", "2", *words)
        assert answer.code == ExitCode.REFUSED
        assert "revision 2 cannot be returned to: it needs hosts with kubelets" in answer.err
        assert "`protokube up --kubelet` adds them" in answer.err
    assert {path: store.read(path).data for path in store.list_paths()} == before


# What up and undo share.


def a_plan(*restarts: str, masters: int = 1) -> ChangePlan:
    return ChangePlan(values=(), refused=(), restarts=restarts, masters=tuple("abc"[:masters]))


def test_only_what_takes_the_whole_api_away_has_to_be_confirmed() -> None:
    confirm(a_plan("etcd main", masters=3), CLUSTER, yes=False)
    confirm(a_plan("kube-scheduler", "kubelet"), CLUSTER, yes=False)
    confirm(a_plan("kube-apiserver"), CLUSTER, yes=True)
    for part in ("etcd main", "etcd events", "kube-apiserver"):
        with pytest.raises(Refused, match=f"has one master: while it restarts {part}, nothing answers") as refused:
            confirm(a_plan(part), CLUSTER, yes=False)
        assert "--yes" in refused.value.want


def test_masters_are_named_by_their_groups() -> None:
    assert groups_of(of_spec(1).master) == ["master-a", "master-b", "master-c"]


def test_the_spec_of_a_revision_is_completed_again_to_the_same_configuration() -> None:
    made = of_spec(1, quota(SPEC))

    assert from_config(complete_revision(made), kubernetes=False) == replace(made.master, revision=0)


class Quiet:
    """As much of the progress as following needs."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def say(self, text: str) -> None:
        """What is waited for."""


def test_ctrl_c_while_a_rollout_is_followed_says_that_it_goes_on(
    memory: MemoryStore, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> list[str]:
        raise KeyboardInterrupt

    put(memory, of_spec(1), of_spec(2))
    with pytest.raises(KeyboardInterrupt):
        follow(Progress(), memory, of_spec(2), 60.0, waits=interrupted, announce=lambda: None)

    text = f"revision 2 goes on by itself: `protokube rollout status --cluster {CLUSTER}` shows how far it is"
    assert text in capsys.readouterr().err


def followed(store: Store, number: int = 2, timeout: float = 0.0) -> tuple[Any, int]:
    """What following ends with, and how often it was announced."""
    announced: list[int] = []
    progress: Any = Quiet()
    try:
        result: Any = follow(
            progress, store, of_spec(number), timeout, waits=lambda: ["master-1: etcd"],
            announce=lambda: announced.append(1),
        )  # fmt: skip
    except (Refused, TryLater) as error:
        result = error
    return result, len(announced)


def test_following_ends_when_all_masters_run_it(memory: MemoryStore) -> None:
    put(memory, of_spec(1), of_spec(2))
    change(memory, state=State.DONE)
    record, announced = followed(memory)

    assert (record.wanted, record.state, announced) == (2, State.DONE, 1)


def test_following_a_rollout_that_stopped_says_why_and_that_it_is_back(memory: MemoryStore) -> None:
    put(memory, of_spec(1), of_spec(2))
    change(memory, state=State.STOPPED, failure=FAILURE)
    error, _ = followed(memory)

    assert isinstance(error, Refused)
    assert error.message == "revision 2 stopped at master-1, which is back on its former revision"
    assert error.saw == FAILURE.text
    assert str(error) == str(stopped(Rollout(wanted=2, state=State.STOPPED, failure=FAILURE)))


def test_following_waits_for_a_master_that_still_returns_and_then_for_no_progress(memory: MemoryStore) -> None:
    put(memory, of_spec(1), of_spec(2))
    change(memory, state=State.STOPPED, failure=FAILURE, turn=Turn(machine="i-1", name="master-1", at=0.0))
    error, _ = followed(memory)

    assert isinstance(error, TryLater)
    assert "no progress" in error.message
    assert error.saw == "master-1: etcd"


def test_following_ends_when_somebody_puts_another_revision_in_force(memory: MemoryStore) -> None:
    put(memory, of_spec(1), of_spec(2), of_spec(3))
    error, _ = followed(memory)

    assert isinstance(error, Refused)
    assert error.message == "revision 3 was put in force meanwhile, so 2 is not rolled out"


# The revision that `up` makes.


def made_by_up(store: Store, wanted: MasterConfig, text: str = SPEC) -> Revision:
    config = complete_here(read([("dev.yaml", text)]), ETCD, "")
    texts = [("dev.yaml", text)]
    target = Target(config=config, wanted=wanted, texts=texts, source=str(Path("dev.yaml").resolve()))
    return make_revision(store, target, wanted, texts)


def test_the_same_configuration_is_no_new_revision(memory: MemoryStore) -> None:
    put(memory, of_spec(1))
    first = in_force(memory, CLUSTER)
    assert first is not None

    assert made_by_up(memory, of_spec(1).master) == first[1]
    assert made_by_up(memory, replace(of_spec(1).master, addons="sha256:new")).number == 1


def test_another_configuration_is_a_new_revision_which_is_not_in_force_yet(memory: MemoryStore) -> None:
    put(memory, of_spec(1))
    made = made_by_up(memory, of_spec(2, quota(SPEC)).master, quota(SPEC))
    record = read_rollout(memory, CLUSTER)

    assert (made.number, made.source, made.etcd) == (2, str(Path("dev.yaml").resolve()), ETCD)
    assert "@" in made.author
    assert made.master.revision == 2
    assert record is not None
    assert record.wanted == 1


def test_a_configuration_of_before_is_a_new_revision_all_the_same(memory: MemoryStore) -> None:
    put(memory, of_spec(1), of_spec(2, quota(SPEC)))

    assert made_by_up(memory, of_spec(1).master).number == 3


def test_where_kubelets_were_to_follow_a_new_revision_says_that_they_do_not(memory: MemoryStore) -> None:
    """Else the next plain `up` would add them although they were declined."""
    put(memory, of_spec(1), of_spec(2, quota(SPEC), note=f"stage 1 of 2{KUBELETS_FOLLOW}"))
    made = made_by_up(memory, of_spec(2, quota(SPEC)).master, quota(SPEC))

    assert (made.number, made.note) == (3, "")
    assert made.digest == of_spec(2, quota(SPEC)).digest


def test_what_was_in_force_is_found_with_the_greatest_number_that_was_given(memory: MemoryStore) -> None:
    assert find_former(memory, CLUSTER) is None
    put(memory, of_spec(1))
    keep(memory, of_spec(5, quota(SPEC)))
    former = find_former(memory, CLUSTER)

    assert former is not None
    assert former.config is not None
    assert (former.revision.number, former.newest, former.config.name) == (1, 5, CLUSTER)
