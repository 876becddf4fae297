"""An upgrade stage by stage over a store: what each revision is, and how a command that ended goes on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from builders.revisions import a_revision, keep
from protokube.cli.shared.completing import complete_here, complete_revision, known_configuration, matching_text
from protokube.cli.shared.protecting import compare, kept
from protokube.cli.shared.rollout import oldest_api
from protokube.cli.shared.upgrade import Planned, Target, same_programs, stage_by_stage, use_addons
from protokube.cli.up.change import Former, find_former, show_plan
from protokube.config.complete import Config
from protokube.errors import Refused, TryLater
from protokube.etcd import Status
from protokube.launch.derive import from_config, master_kubelets
from protokube.launch.machine import MasterConfig
from protokube.launch.plan import ChangePlan, plan
from protokube.launch.revisions import Revision, by_number, change_rollout, put_in_force, read_rollout, with_versions
from protokube.launch.rollout import Failure, Rollout, State
from protokube.spec.parse import read
from protokube.store.addons import keep_addons, put_addons, read_current
from protokube.store.memory import MemoryStore

CLUSTER = "dev"
FAILURE = Failure(machine="i-1", name="master-a", revision=2, text="it does not run")


def text_of(etcd: str, kubernetes: str, **settings: Any) -> str:
    fields = {"name": "main", "version": etcd, **settings}
    members = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return (
        "apiVersion: protokube.io/v1alpha1\nkind: Cluster\n"
        f"metadata: {{name: {CLUSTER}}}\nspec:\n  cloud: local\n  masters: 3\n"
        f"  kubernetesVersion: {kubernetes}  # as everywhere\n"
        f"  etcdClusters:\n  - {{{members}}}  # see the wiki\n"
    )


@dataclass
class Version:
    """A spec, and what masters get of it."""

    etcd: str
    kubernetes: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return text_of(self.etcd, self.kubernetes, **self.settings)

    @property
    def config(self) -> Config:
        return complete_here(read([("dev.yaml", self.text)]), self.etcd, self.kubernetes)

    @property
    def master(self) -> MasterConfig:
        return replace(from_config(self.config, nodes=True), kubelets=master_kubelets(self.config))

    def revision(self, number: int) -> Revision:
        fields = {"etcd": self.etcd, "kubernetes": self.kubernetes, "spec": self.text, "source": "dev.yaml"}
        return a_revision(number, self.master, **fields)

    def target(self) -> Target:
        return Target(config=self.config, wanted=self.master, texts=[("dev.yaml", self.text)], source="dev.yaml")


OLD, NEW = Version("3.5.26", "1.33.2"), Version("3.6.8", "1.34.1")


class Masters:
    """The far side of the record: they take what is put in force, or stop at a revision."""

    def __init__(self, store: MemoryStore, stop_at: int = 0) -> None:
        self.store, self.stop_at = store, stop_at

    def roll(self, revision: Revision, planned_on: Rollout) -> Rollout:
        put_in_force(self.store, CLUSTER, revision, running=True, planned_on=planned_on)
        if revision.number == self.stop_at:
            change_rollout(self.store, CLUSTER, lambda known: known.stopped(replace(FAILURE, revision=2), 1.0))
            raise Refused("it stopped")
        return change_rollout(self.store, CLUSTER, lambda known: known.completed(1.0, "master-a"))


@pytest.fixture
def store() -> MemoryStore:
    """All masters run the old versions."""
    made = MemoryStore("upgrade")
    keep(made, OLD.revision(1))
    put_in_force(made, CLUSTER, OLD.revision(1), running=False)
    return made


def former_of(store: MemoryStore) -> Former:
    found = find_former(store, CLUSTER)
    assert found is not None
    return found


def planned(store: MemoryStore) -> Planned:
    return former_of(store).planned


def stopped_at(store: MemoryStore, number: int, version: Version, snapshots: dict[str, str] | None = None) -> None:
    with pytest.raises(Refused, match="it stopped"):
        stage_by_stage(store, planned(store), version.target(), snapshots or {}, Masters(store, number).roll)


def planned_change(store: MemoryStore, version: Version) -> ChangePlan:
    """As `up` plans it, where nobody is asked for what is still in use."""
    former = former_of(store)
    assert former.base_config is not None
    base, present = with_versions(former.base), with_versions(former.revision)
    return plan(former.base_config, version.config, base, version.master, ["a", "b", "c"], None, present)


def test_an_upgrade_is_three_revisions_and_the_first_names_the_snapshot(store: MemoryStore) -> None:
    last = stage_by_stage(store, planned(store), NEW.target(), {"main": "backups/1"}, Masters(store).roll)
    found = by_number(store, CLUSTER)

    assert [found[number].note for number in (2, 3, 4)] == ["stage 1 of 3", "stage 2 of 3", ""]
    assert [(found[number].etcd, found[number].kubernetes) for number in (2, 3, 4)] == [
        ("3.6.8", "1.33.2"), ("3.6.8", "1.34.1"), ("3.6.8", "1.34.1"),
    ]  # fmt: skip
    assert [dict(found[number].snapshots) for number in (2, 3, 4)] == [{"main": "backups/1"}, {}, {}]
    assert last.number == 4
    assert replace(last.master, revision=0) == replace(NEW.master, revision=0)
    assert last.spec == NEW.text


def test_a_command_that_was_killed_between_two_stages_goes_on_with_the_next_one(store: MemoryStore) -> None:
    class Killed(Exception):
        pass

    def roll(revision: Revision, planned_on: Rollout) -> Rollout:
        if revision.number == 3:
            raise Killed
        return Masters(store).roll(revision, planned_on)

    with pytest.raises(Killed):
        stage_by_stage(store, planned(store), NEW.target(), {}, roll)
    last = stage_by_stage(store, planned(store), NEW.target(), {}, Masters(store).roll)

    assert (last.number, last.note) == (5, "")  # 3 was made and never put in force
    assert by_number(store, CLUSTER)[4].note == "stage 1 of 2"


def test_a_stage_has_a_text_that_names_what_it_runs_and_completes_to_it(store: MemoryStore) -> None:
    """`rollout undo` writes it to the store, and the next plain `up` reads it there."""
    stopped_at(store, 3, NEW)
    stage = by_number(store, CLUSTER)[2]

    assert stage.spec == text_of("3.6.8", "1.33.2"), "comments included"
    assert complete_revision(stage).cluster["etcdClusters"]["main"]["version"] == "3.6.8"


def test_a_text_without_versions_stays_as_it_is() -> None:
    text = text_of("3.5.26", "1.33.2").replace("version: 3.5.26, ", "").replace(", version: 3.5.26", "")

    assert matching_text(text, "3.6.8", "1.33.2") == text


def test_another_operator_between_two_stages_ends_the_command(store: MemoryStore) -> None:
    def roll(revision: Revision, planned_on: Rollout) -> Rollout:
        record = Masters(store).roll(revision, planned_on)
        keep(store, other := OLD.revision(9))
        put_in_force(store, CLUSTER, other, running=True)
        return record

    with pytest.raises(Refused, match="the cluster changed while this command ran") as refused:
        stage_by_stage(store, planned(store), NEW.target(), {}, roll)
    assert "now 9" in refused.value.saw


def test_etcd_is_not_taken_past_a_version_that_only_some_members_have_reached(store: MemoryStore) -> None:
    """The members that run 3.5.20 yet must not jump to 3.6."""
    begun = MemoryStore("begun")
    keep(begun, (first := Version("3.5.20", "1.33.2").revision(1)))
    put_in_force(begun, CLUSTER, first, running=False)
    stopped_at(begun, 2, Version("3.5.30", "1.33.2"))

    (problem,) = planned_change(begun, Version("3.6.8", "1.33.2")).refused

    assert "cannot go from 3.5.20 to 3.6.8" in problem.message
    assert problem.hint.startswith("not all masters run the revision in force yet: run `up` with its spec first")


def test_api_servers_are_not_taken_two_versions_up_where_a_rollout_stopped_between(store: MemoryStore) -> None:
    stopped_at(store, 2, Version("3.5.26", "1.34.1"))

    (problem,) = planned_change(store, Version("3.5.26", "1.35.1")).refused

    assert "cannot go from 1.33.2 to 1.35.1" in problem.message


def test_the_same_spec_after_a_rollout_that_stopped_shows_what_is_rolled_out(store: MemoryStore) -> None:
    stopped_at(store, 2, NEW)

    change = planned_change(store, NEW)

    assert len(change.stages) == 3
    assert "etcd main" in change.restarts
    assert {each.partition(" ")[0] for each in change.one_way} == {"etcd", "Kubernetes"}
    assert any(each.path == "kubernetesVersion" for each in change.values)


def test_the_plan_of_a_rollout_that_is_unfinished_names_what_all_masters_ran_and_what_comes(
    store: MemoryStore, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_at(store, 2, NEW)
    former, wanted = former_of(store), NEW.master

    show_plan(planned_change(store, NEW), former, wanted, "text", dry_run=True)
    shown = capsys.readouterr().out

    assert shown.startswith(f"{CLUSTER}: revision 1 would change to 4\n"), "2 is the first stage"
    assert "no way back: etcd main 3.5 -> 3.6" in shown
    assert "revision 2 is stopped: all masters ran 1 last, so this is all that differs from 1" in shown


def test_a_return_to_the_spec_of_before_names_what_restarts_where_the_new_one_is(store: MemoryStore) -> None:
    stopped_at(store, 2, Version("3.5.27", "1.33.2"))

    assert planned_change(store, OLD).restarts == ("etcd main",)


def test_a_spec_that_the_new_etcd_refuses_does_not_close_every_way_on(store: MemoryStore) -> None:
    """The first stage has the old text, and a flag that only the old etcd has."""
    flags = {"extraFlags": "{enable-v2: 'true'}"}
    bad = Version("3.5.26", "1.33.2", flags)
    stage = a_revision(2, NEW.master, etcd="3.6.8", kubernetes="1.33.2", spec=bad.text.replace("3.5.26", "3.6.8"))
    keep(store, stage)
    put_in_force(store, CLUSTER, stage, running=True, planned_on=read_rollout(store, CLUSTER))
    change_rollout(store, CLUSTER, lambda known: known.completed(1.0, "master-a"))

    assert bad.config.name == CLUSTER, "the old etcd has it"
    assert known_configuration(stage) is None
    assert former_of(store).config is None


# Snapshots.


def kept_for(store: MemoryStore, version: Version, agreed: str) -> tuple[str, str] | None:
    at = planned(store)
    return kept(at.record, at.revision, at.base.master.etcd[0], version.master.etcd[0], agreed)


def test_a_rollout_that_goes_on_keeps_its_snapshot_and_one_that_stopped_takes_another(store: MemoryStore) -> None:
    stopped_at(store, 2, NEW, {"main": "backups/1"})
    assert kept_for(store, NEW, "3.5.0") is None
    change_rollout(store, CLUSTER, lambda known: replace(known, state=State.ROLLING, failure=None))

    found = kept_for(store, NEW, "3.5.0")

    assert found is not None
    assert found == ("backups/1", "etcd main: the snapshot of revision 2, which is being rolled out")


def test_once_the_members_have_raised_their_data_nothing_is_rehearsed(store: MemoryStore) -> None:
    stopped_at(store, 2, NEW, {"main": "backups/1"})

    assert kept_for(store, NEW, "3.6.0") == (
        "backups/1", "etcd main: its members have agreed on 3.6.0 already, so none is needed",
    )  # fmt: skip
    assert kept_for(store, Version("3.6.9", "1.33.2"), "3.6.0") is None, "a program that nobody has run with it"


def test_a_snapshot_that_was_taken_after_a_stop_is_named_by_a_revision(store: MemoryStore) -> None:
    stopped_at(store, 2, NEW, {"main": "backups/1"})
    stage_by_stage(store, planned(store), NEW.target(), {"main": "backups/2"}, Masters(store).roll)

    assert dict(by_number(store, CLUSTER)[3].snapshots) == {"main": "backups/2"}


# Versions that run.


def status(version: str) -> Status:
    return Status(
        cluster_id=1, member_id=1, leader=1, revision=1, raft_term=1, raft_index=1, applied_index=1, db_size=0,
        version=version, learner=False,
    )  # fmt: skip


def test_a_member_that_does_not_answer_is_not_taken_for_one_that_runs_the_new_version() -> None:
    etcd = NEW.master.etcd[0]
    names = [each.name for each in etcd.members]

    compare(2, etcd, {name: status("3.6.8") for name in names})
    with pytest.raises(TryLater, match="not every member of etcd main") as later:
        compare(2, etcd, {names[0]: status("3.6.8")})
    assert later.value.saw == f"no answer of {', '.join(names[1:])}"
    with pytest.raises(TryLater):
        compare(2, etcd, {})
    with pytest.raises(Refused, match="not its version of etcd"):
        compare(2, etcd, {names[0]: status("3.5.26")})


def test_a_wrong_image_of_etcd_can_be_corrected_by_the_next_change() -> None:
    """So only programs that stay are checked before the next stage begins."""
    assert same_programs(OLD.master, Version("3.5.26", "1.34.1").master) == list(OLD.master.etcd)
    assert same_programs(OLD.master, NEW.master) == []


def test_the_oldest_api_server_is_that_of_the_masters_and_not_of_the_record(store: MemoryStore) -> None:
    keep(store, NEW.revision(2))

    assert oldest_api(store, CLUSTER, {1, 2}) == "1.33.2"
    assert oldest_api(store, CLUSTER, {2}) == "1.34.1", "no way back: all of them run the new one"
    assert oldest_api(store, CLUSTER, set()) == oldest_api(store, CLUSTER, {7}) == ""


def test_the_addons_of_a_configuration_become_current_only_with_it(store: MemoryStore) -> None:
    first = put_addons(store, CLUSTER, ())
    use_addons(store, replace(NEW.master, addons="lost"))
    use_addons(store, replace(NEW.master, addons=""))
    current = read_current(store, CLUSTER)
    assert current is not None
    assert current.digest == first

    use_addons(store, replace(NEW.master, addons=keep_addons(store, CLUSTER, ())))
    assert read_current(store, CLUSTER) == current
