"""What the former revision wrote and the present one does not have goes; what is somebody else's stays."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from builders.agent import a_machine, a_round
from builders.revisions import a_master, a_revision
from protokube.agent.delivery import present, withdrawn
from protokube.agent.report import Report
from protokube.launch.machine import FileText, MasterConfig

MANIFESTS = "etc/kubernetes/manifests"
OWN, HAND = b"of the spec", b"changed by hand"


def a_file(content: bytes = OWN) -> FileText:
    return FileText(text=b64encode(content).decode(), mode=0o644)


def without(wanted: MasterConfig, *names: str) -> MasterConfig:
    return replace(wanted, components=tuple(each for each in wanted.components if each.name not in names))


def written(root: Path, path: str, content: bytes = OWN) -> Path:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def changed(root: Path, before: MasterConfig, after: MasterConfig) -> Report:
    """From one revision to the next on this machine; what the first round says."""
    present.take(root, a_revision(1, before))
    present.take(root, a_revision(2, after))
    round_ = a_round(root, wanted=replace(after, revision=2))
    withdrawn.sync(round_)
    return round_.report


@pytest.fixture
def plain() -> MasterConfig:
    return a_master()


def test_the_manifest_of_a_component_that_is_gone_is_removed_and_no_other(tmp_path: Path, plain: MasterConfig) -> None:
    for each in plain.components:
        written(tmp_path, f"{MANIFESTS}/{each.file_name}")
    report = changed(tmp_path, plain, without(plain, "dns-controller"))

    left = sorted(each.name for each in (tmp_path / MANIFESTS).iterdir())
    assert left == sorted(each.file_name for each in plain.components if each.name != "dns-controller")
    assert [(each.about, each.text) for each in report.did] == [
        ("dns-controller", "manifest removed: the configuration has it no more")
    ]


def test_what_was_removed_before_is_not_reported_again(tmp_path: Path, plain: MasterConfig) -> None:
    assert changed(tmp_path, plain, without(plain, "dns-controller")).sentence() == ""


def test_a_manifest_that_the_user_provides_now_stays(tmp_path: Path, plain: MasterConfig) -> None:
    path = f"/{MANIFESTS}/dns-controller.manifest"
    place = written(tmp_path, path, HAND)
    changed(tmp_path, plain, replace(without(plain, "dns-controller"), files={path: a_file(HAND)}))

    assert place.read_bytes() == HAND


@pytest.mark.parametrize("group", [False, True])
def test_a_file_that_the_spec_has_no_more_is_removed(tmp_path: Path, plain: MasterConfig, group: bool) -> None:
    place, files = written(tmp_path, "/etc/own/a"), {"/etc/own/a": a_file()}
    before = replace(plain, group_files={a_machine().group: files}) if group else replace(plain, files=files)
    report = changed(tmp_path, before, plain)

    assert not place.exists()
    assert [each.text for each in report.did] == ["/etc/own/a removed: the configuration has it no more"]


def test_a_file_that_was_changed_by_hand_stays_and_is_reported(tmp_path: Path, plain: MasterConfig) -> None:
    place = written(tmp_path, "/etc/own/a", HAND)
    report = changed(tmp_path, replace(plain, files={"/etc/own/a": a_file()}), plain)

    assert place.read_bytes() == HAND
    assert [(each.about, each.text) for each in report.warnings] == [
        ("/etc/own/a", "the configuration has it no more, but it was changed by hand, so it stays")
    ]
    assert report.did == []


def test_a_file_that_is_gone_already_is_nothing_to_talk_about(tmp_path: Path, plain: MasterConfig) -> None:
    assert changed(tmp_path, replace(plain, files={"/etc/own/a": a_file()}), plain).sentence() == ""


def test_a_file_of_another_group_was_never_here(tmp_path: Path, plain: MasterConfig) -> None:
    place = written(tmp_path, "/etc/own/a")
    changed(tmp_path, replace(plain, group_files={"another": {"/etc/own/a": a_file()}}), plain)

    assert place.exists()


def test_a_file_that_moves_from_all_masters_to_our_group_stays(tmp_path: Path, plain: MasterConfig) -> None:
    place, files = written(tmp_path, "/etc/own/a"), {"/etc/own/a": a_file()}
    changed(tmp_path, replace(plain, files=files), replace(plain, group_files={a_machine().group: files}))

    assert place.exists()


def test_a_path_that_something_of_ours_writes_now_stays(tmp_path: Path, plain: MasterConfig) -> None:
    """Even with the same content, such as a kubeconfig that a user had provided before."""
    kubeconfig = next(iter(plain.kubeconfigs))
    first = replace(plain.components[0], files={"/srv/kubernetes/policy.yaml": OWN.decode()})
    after = replace(
        plain, components=(first, *plain.components[1:]), secret_files={"/srv/kubernetes/encryption.yaml": "encryption"}
    )
    paths = (kubeconfig, "/srv/kubernetes/policy.yaml", "/srv/kubernetes/encryption.yaml")
    places = [written(tmp_path, path) for path in paths]
    report = changed(tmp_path, replace(plain, files=dict.fromkeys(paths, a_file())), after)

    assert [each.read_bytes() for each in places] == [OWN] * 3
    assert report.sentence() == ""


def test_without_a_former_revision_nothing_is_ours_to_remove(tmp_path: Path, plain: MasterConfig) -> None:
    place = written(tmp_path, f"{MANIFESTS}/dns-controller.manifest")
    present.take(tmp_path, a_revision(1, without(plain, "dns-controller")))
    round_ = a_round(tmp_path, wanted=replace(without(plain, "dns-controller"), revision=1))
    withdrawn.sync(round_)

    assert place.exists()


def test_a_damaged_former_revision_proves_nothing(tmp_path: Path, plain: MasterConfig) -> None:
    place = written(tmp_path, f"{MANIFESTS}/dns-controller.manifest")
    written(tmp_path, present.FORMER, b"{}")
    withdrawn.sync(a_round(tmp_path, wanted=replace(without(plain, "dns-controller"), revision=2)))

    assert place.exists()


def test_after_a_return_what_only_the_failed_revision_had_is_removed(tmp_path: Path, plain: MasterConfig) -> None:
    """A component that the failed revision added would go on crashing next to those that are well again."""
    before = without(plain, "dns-controller")
    present.take(tmp_path, a_revision(1, before))
    present.take(tmp_path, a_revision(2, replace(plain, files={"/etc/own/a": a_file()})))
    places = [written(tmp_path, f"{MANIFESTS}/dns-controller.manifest"), written(tmp_path, "/etc/own/a")]
    present.go_back(tmp_path)
    withdrawn.sync(a_round(tmp_path, wanted=replace(before, revision=1)))

    assert [each.exists() for each in places] == [False, False]
