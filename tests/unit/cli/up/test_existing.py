"""`up` asked again: it goes on with what is there, and what would make it another cluster is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.command import Call
from builders.config import completed
from builders.revisions import keep
from protokube.cli.shared.completing import complete_here
from protokube.cli.shared.templates import KUBELETS_FOLLOW
from protokube.cli.up.choosing import default_spec, read_default_spec, read_spec
from protokube.cli.up.existing import (
    ClusterShape,
    existing_cluster,
    keep_earlier_release,
    kept_spec,
    members_of,
    need_the_same,
    need_unchanged,
)
from protokube.errors import ExitCode, Refused, TryLater
from protokube.launch.derive import from_config
from protokube.launch.revisions import Revision, create_revision, digest_of, put_in_force
from protokube.local.base.paths import Paths
from protokube.local.bringup import launch_data
from protokube.spec.parse import Spec
from protokube.store.configuration import put_config
from protokube.store.file import FileStore


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path))


def made(kubernetes: str = "none", masters: int = 3, *, kubelet: bool = False, events: bool = False) -> ClusterShape:
    keys = ("main", "events")[: 1 + events]
    return ClusterShape.of(
        kubernetes, kubelet, [(f"{key}/{each}", f"master-{each}") for key in keys for each in "abc"[:masters]]
    )


def hosts_made_with(masters: int = 3, **fields: Any) -> None:
    wanted = from_config(completed(cloud="local", masters=masters, kubernetesVersion="1.34.1", name="dev"))
    Paths.of("dev").create()
    file = Paths.of("dev").host("master-a-1") / "etc/protokube/agent.json"
    file.parent.mkdir(parents=True)
    file.write_text(launch_data(replace(wanted, **fields), "dev"))


def begun(masters: int, *, events: bool = False, more: str = "") -> None:
    """Cut short after the configuration was written, before the first host."""
    spec, texts = read_default_spec(default_spec("dev", masters, events) + more)
    paths = Paths.of("dev")
    paths.create()
    put_config(FileStore(paths.store), complete_here(spec, "3.4.23", ""), texts)


def test_what_the_hosts_of_a_cluster_were_made_with_is_read_off_them() -> None:
    assert existing_cluster("dev") is None
    hosts_made_with(kubelet_kubeconfig="/var/lib/kubelet/kubeconfig")
    assert existing_cluster("dev") == made("1.34.1", kubelet=True)


def test_hosts_without_kubernetes_are_told_apart() -> None:
    hosts_made_with(masters=1, components=())
    assert existing_cluster("dev") == made("none", masters=1)


def test_before_the_first_host_the_members_are_those_that_disks_may_be_there_for() -> None:
    begun(3, events=True)
    assert existing_cluster("dev") == made("", events=True)


def test_the_members_of_a_configuration_are_compared_with_those_of_hosts_and_of_the_store_alike() -> None:
    spec, _ = read_default_spec(default_spec("dev", 3, events=True))
    wanted = from_config(complete_here(spec, "3.4.23", ""), kubernetes=False)
    assert ClusterShape.of("none", False, members_of(wanted.etcd)) == made(events=True)


def test_a_cluster_goes_on_with_the_spec_it_was_made_from() -> None:
    assert kept_spec("dev") is None
    begun(1, events=True, more="  kubeAPIServer: {maxRequestsInflight: 77}\n")
    kept = kept_spec("dev")
    assert kept is not None
    spec, texts = kept

    config = complete_here(spec, "3.4.23", "")

    assert list(config.cluster["etcdClusters"]) == ["main", "events"]
    assert list(config.cluster["etcdClusters"]["main"]["members"]) == ["a"]
    assert config.cluster["kubeAPIServer"]["maxRequestsInflight"] == 77
    again = put_config(FileStore(Paths.of("dev").store), config, texts)
    assert set(again.values()) == {"unchanged"}


def test_a_cluster_is_not_made_half_into_another() -> None:
    need_the_same("dev", None, made("1.34.1", kubelet=True))
    need_the_same("dev", made(), made())
    with pytest.raises(Refused, match="exists already, with a different configuration") as refused:
        need_the_same("dev", made(masters=1), made("1.34.1", masters=1, kubelet=True))
    assert (refused.value.saw, refused.value.want) == (
        "no Kubernetes, the built-in pod runner, masters master-a, etcd members main/a",
        "Kubernetes 1.34.1, the real kubelet, masters master-a, etcd members main/a",
    )
    assert "`protokube up --cluster dev` continues with the existing cluster" in refused.value.hint
    assert "`protokube down --cluster dev` removes it with its data" in refused.value.hint


def test_a_cluster_that_another_up_made_or_removed_meanwhile_is_not_written_over() -> None:
    """As while this one built Kubernetes for ten minutes."""
    need_unchanged("dev", None)
    begun(1)
    before = existing_cluster("dev")
    need_unchanged("dev", before)

    for seen in (None, made("", masters=3)):
        with pytest.raises(TryLater, match="another `up` has changed dev meanwhile"):
            need_unchanged("dev", seen)
    shutil.rmtree(Paths.of("dev").root)
    with pytest.raises(TryLater):
        need_unchanged("dev", before)


@pytest.mark.parametrize("now", [made(), made(masters=1, events=True)])
def test_a_spec_with_other_members_than_there_are_is_refused(now: ClusterShape) -> None:
    with pytest.raises(Refused, match="dev exists already") as refused:
        need_the_same("dev", made(masters=1), now)
    assert refused.value.want == str(now)


def test_members_of_the_same_names_in_other_groups_are_other_masters() -> None:
    moved = ClusterShape.of("none", False, [(each, "elsewhere") for each in made().members])
    with pytest.raises(Refused, match="dev exists already"):
        need_the_same("dev", made(), moved)


def test_before_the_first_host_the_version_may_still_change_but_the_members_may_not() -> None:
    need_the_same("dev", made(""), made("1.34.1", kubelet=True))
    with pytest.raises(Refused, match="dev exists already"):
        need_the_same("dev", made("", masters=1), made("1.34.1"))


def test_options_that_ask_for_something_else_than_there_is_are_refused_together() -> None:
    with pytest.raises(Refused, match="dev exists already") as refused:
        need_the_same("dev", made(masters=1), made(masters=1), masters=3, events=True)
    assert refused.value.want == "--masters 3; --events"


@given(st.integers(1, 3), st.booleans(), st.none() | st.integers(1, 3), st.booleans())
def test_options_are_refused_exactly_if_what_is_there_is_not_so(
    there: int, with_events: bool, masters: int | None, events: bool
) -> None:
    before = made(masters=there, events=with_events)
    try:
        need_the_same("dev", before, before, masters=masters, events=events)
        refused = False
    except Refused:
        refused = True
    assert refused == (masters not in (None, there) or (events and not with_events))


def a_spec(folder: Path, fields: str) -> Spec:
    file = folder / "spec.yaml"
    head = "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\n"
    file.write_text(f"{head}spec: {{cloud: local{fields}}}\n")
    return read_spec(file)[0]


def test_the_version_is_carried_on_with_a_spec_and_without(tmp_path: Path) -> None:
    before = made("1.34.1", kubelet=True)
    for spec in (None, a_spec(tmp_path, "")):
        assert keep_earlier_release(before, spec, "") == "1.34.1"
        assert keep_earlier_release(before, spec, "1.34.1") == "1.34.1"
        assert keep_earlier_release(None, spec, "") == ""
        assert keep_earlier_release(made(), spec, "") == "none"


def test_a_version_that_is_asked_for_now_is_not_hidden_by_the_old_one(tmp_path: Path) -> None:
    before = made("1.34.1", kubelet=True)
    named = a_spec(tmp_path, ", kubernetesVersion: 1.35.0")
    assert keep_earlier_release(before, None, "1.35.0") == "1.35.0"
    assert keep_earlier_release(before, named, "") == ""
    assert keep_earlier_release(before, None, "none") == "none"
    assert keep_earlier_release(made("none"), None, "build") == "build"
    assert keep_earlier_release(made("none"), named, "") == "", "newly named"
    known = replace(made("none"), named="1.35.0")
    assert keep_earlier_release(known, named, "") == "none", "named before, and not wanted"


def test_kubernetes_and_kubelets_may_be_added_to_a_cluster_with_revisions_and_not_removed() -> None:
    shapes = (made(), made("1.34.1"), made("1.34.1", kubelet=True))
    alone, control, nodes = (replace(each, recorded=True) for each in shapes)
    for before, now in ((alone, control), (alone, nodes), (control, nodes)):
        need_the_same("dev", before, now)
        with pytest.raises(Refused, match="cannot be removed from dev: ") as refused:
            need_the_same("dev", now, before)
        assert "`protokube up --cluster dev` keeps what it has" in refused.value.hint
        assert "`protokube rollout undo --cluster dev` ends an addition that is unfinished" in refused.value.hint
    with pytest.raises(Refused, match="exists already"):
        need_the_same("dev", alone, replace(made("1.34.1", masters=1), recorded=True))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--masters", "1", "--events"], "--masters, --events"),
        (["--cluster", "another"], "--cluster another"),
    ],
)
def test_an_option_beside_a_spec_that_says_it_is_not_passed_over(
    call: Call, tmp_path: Path, options: list[str], named: str
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(default_spec("mine", 3, events=False))

    answer = call("up", str(spec), "--kubernetes", "none", *options)

    assert answer.code == ExitCode.INVALID
    assert f"error: {named}: the spec of mine sets that" in answer.err


def test_versions_are_those_of_the_revision_in_force() -> None:
    hosts_made_with()
    store = FileStore(Paths.of("dev").store)
    wanted = from_config(completed(cloud="local", masters=3, kubernetesVersion="1.35.2", name="dev"))
    revision = Revision(
        number=1, digest=digest_of(wanted), author="anna", at=1.0, master=wanted, kubernetes="1.35.2", etcd="3.6.8"
    )
    create_revision(store, "dev", lambda number: revision)
    put_in_force(store, "dev", revision, running=False)

    found = existing_cluster("dev")

    assert found is not None
    assert (found.kubernetes, found.etcd) == ("1.35.2", "3.6.8"), "not those that a host was launched with"


def test_an_upgrade_that_was_interrupted_goes_on_with_a_plain_up_and_not_back() -> None:
    store = FileStore(Paths.of("dev").store)
    for number, (kubernetes, etcd) in enumerate((("1.35.2", "3.6.7"), ("1.36.4", "3.6.8")), start=1):
        wanted = from_config(completed(cloud="local", masters=3, kubernetesVersion=kubernetes, name="dev"))
        revision = Revision(
            number=number, digest=digest_of(wanted), author="anna", at=1.0, master=replace(wanted, revision=number),
            kubernetes=kubernetes, etcd=etcd,
        )  # fmt: skip
        Paths.of("dev").create()
        keep(store, revision)
        put_in_force(store, "dev", revision, running=True)

    found = existing_cluster("dev")

    assert found is not None
    assert (found.kubernetes, found.etcd, found.recorded) == ("1.36.4", "3.6.8", True)
    assert keep_earlier_release(found, None, "") == "1.36.4"


def test_kubelets_that_were_to_follow_can_be_declined_as_long_as_no_host_has_one() -> None:
    """`up` was killed between the two stages of an addition, or the first one stopped."""
    wanted = from_config(completed(cloud="local", masters=3, kubernetesVersion="1.35.2", name="dev"), nodes=False)
    revision = Revision(
        number=1, digest=digest_of(wanted), author="anna", at=1.0, master=replace(wanted, revision=1),
        kubernetes="1.35.2", etcd="3.6.8", note=f"stage 1 of 2{KUBELETS_FOLLOW}",
    )  # fmt: skip
    Paths.of("dev").create()
    store = FileStore(Paths.of("dev").store)
    keep(store, revision)
    put_in_force(store, "dev", revision, running=True)

    found = existing_cluster("dev")

    assert found is not None
    assert found.kubelet, "a plain `up` goes on with them"
    need_the_same("dev", found, replace(found, kubelet=False))


def test_another_version_of_kubernetes_is_the_same_cluster_and_none_is_not() -> None:
    need_the_same("dev", made("1.35.2"), made("1.36.4"))
    with pytest.raises(Refused):
        need_the_same("dev", made("1.35.2"), made("none"))
