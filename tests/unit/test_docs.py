"""The pages say what is so."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from builders import keys
from protokube.cli.main import run
from protokube.spec.kops_table import their_fields, verdict

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()


def docs_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_script", ROOT / "scripts" / "docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_what_make_docs_would_write() -> None:
    for page, text in docs_script().pages().items():
        assert page.read_text() == text, f"{page.name} is out of date: run `make docs`"


def test_every_field_of_the_original_has_a_verdict() -> None:
    missing = [f"{kind} {path}" for kind, path in their_fields() if verdict(kind, path) is None]
    assert missing == []


def test_verdicts_know_the_three_outcomes_and_nothing_else() -> None:
    outcomes = {found.what for kind, path in their_fields() if (found := verdict(kind, path))}
    assert outcomes == {"carried out", "ignored", "refused"}


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("Cluster", "networkCIDR", ("carried out", "")),
        ("Cluster", "cloudProvider", ("carried out", "as cloud")),
        ("Cluster", "kubeDNS.serverIP", ("carried out", "as clusterDNS.serverIP")),
        (
            "Cluster",
            "etcdClusters[].etcdMembers[].volumeSize",
            ("carried out", "as etcdClusters[].members[].volumeSize"),
        ),
        ("Cluster", "etcdClusters[].manager.backupInterval", ("carried out", "as backups.interval")),
        ("Cluster", "docker.bridge", ("carried out", "kept as given")),
        ("Cluster", "networking.calico.mtu", ("carried out", "as networking.plugin and networking.options")),
        ("Cluster", "channel", ("ignored", "versions are set in the spec; there are no channels")),
        ("Cluster", "metricsServer.enabled", ("ignored", None)),
        ("Cluster", "kubeAPIServer.basicAuthFile", ("refused", None)),
        ("InstanceGroup", "machineType", ("carried out", "")),
    ],
)
def test_a_field_of_the_original_is_judged_by_its_nearest_rule(
    kind: str, path: str, expected: tuple[str, str | None]
) -> None:
    found = verdict(kind, path)
    assert found is not None
    assert found.what == expected[0]
    assert expected[1] is None or found.note == expected[1]


def test_a_field_nobody_knows_has_no_verdict() -> None:
    assert verdict("Cluster", "kubernetesVerison") is None
    assert verdict("InstanceGroup", "volumeSize") is None


def test_the_first_screen_of_the_readme_names_the_two_commands() -> None:
    first = "\n".join(README.splitlines()[:25])
    assert "make up" in first
    assert "make test" in first


@pytest.mark.parametrize("path", ["kubelet.maxPods", "kubeAPIServer.flags.etcd-servers"])
def test_the_readme_shows_what_why_really_answers(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["complete", "examples/minimal.yaml", "--why", path]) == 0
    answer = capsys.readouterr().out.strip()
    shown = next(line for line in README.splitlines() if line.startswith(f"{path} is "))
    assert answer.startswith(shown.removesuffix("…").rstrip())


def test_no_test_is_skipped_and_no_code_of_ours_is_patched() -> None:
    forbidden = re.compile(r"pytest\.(mark\.)?(skip|xfail)|monkeypatch\.setattr|mock\.patch|mocker\.")
    own = Path(__file__).name
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.name != own
        for line in path.read_text().splitlines()
        if forbidden.search(line)
    ]
    assert found == []


def test_the_page_about_keys_names_files_for_every_secret() -> None:
    found = keys.rows()

    assert len(found) > 20
    assert [row.secret for row in found if not row.patterns] == []
    assert {row.there for row in found} == {"always", "Kubernetes", "up --kubelet", "with encryptionConfig"}


def test_every_file_that_the_architecture_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([a-z_]+/[a-z0-9_/]+(?:\.py|/)?)`", page))

    assert len(named) > 40
    roots = (ROOT / "src" / "protokube", ROOT)
    assert [each for each in sorted(named) if not any((root / each).exists() for root in roots)] == []
