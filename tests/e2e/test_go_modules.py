"""The real Go builds what looks like Kubernetes from a module proxy of our own, and compiles nothing that was changed.

The modules are tiny; their layout is that of the real ones: six programs, a staging module that the release's go.mod
names as v0.0.0, and its version stamped by the linker.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from protokube.binaries.gomodules import build_from_modules, resolved_sums
from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS
from protokube.binaries.progress import Silent
from protokube.binaries.sources import KUBERNETES_SOURCE
from protokube.errors import InvalidRequest, Refused

RELEASE = """module k8s.io/kubernetes

go 1.21

require k8s.io/component-base v0.0.0

replace k8s.io/component-base => ./staging/src/k8s.io/component-base
"""
PROGRAM = """package main

import (
	"fmt"

	"k8s.io/component-base/version"
)

func main() { fmt.Println("Kubernetes " + version.Get()) }
"""
STAGING = """package version

var gitVersion = "v0.0.0-master"

func Get() string { return gitVersion }
"""


class Proxy:
    """A module proxy as a folder, which Go reads by its own protocol."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for number in ("1.90.1", "1.90.2"):
            programs = {f"cmd/{name}/main.go": PROGRAM for name in PROGRAMS}
            self.publish("k8s.io/kubernetes", f"v{number}", {"go.mod": RELEASE, **programs})
            self.publish("k8s.io/component-base", f"v0.{number[2:]}", self.staging())

    @staticmethod
    def staging(code: str = STAGING) -> dict[str, str]:
        return {"go.mod": "module k8s.io/component-base\n\ngo 1.21\n", "version/version.go": code}

    def publish(self, module: str, tag: str, files: dict[str, str]) -> None:
        place = self.folder / module / "@v"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{tag}.info").write_text(json.dumps({"Version": tag, "Time": "2026-01-01T00:00:00Z"}))
        (place / f"{tag}.mod").write_text(files["go.mod"])
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, text in files.items():
                archive.writestr(f"{module}@{tag}/{name}", text)
        (place / f"{tag}.zip").write_bytes(packed.getvalue())


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    monkeypatch.setenv("GOPROXY", f"file://{tmp_path / 'proxy'}")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.delenv(KUBERNETES.chosen, raising=False)
    return Proxy(tmp_path / "proxy")


def build(cache: Path, number: str, *, unverified: bool = False) -> str:
    sums = cache.parent / "sums"
    built = build_from_modules(KUBERNETES_SOURCE, number, cache, Silent(), unverified=unverified, sums=sums)
    return KUBERNETES.version(built.programs["kubelet"])


def test_a_release_is_built_and_its_programs_say_which_one_they_are(tmp_path: Path, proxy: Proxy) -> None:
    assert build(tmp_path / "cache", "1.90.1", unverified=True) == "1.90.1"
    assert build(tmp_path / "cache", "1.90.2", unverified=True) == "1.90.2"


def test_a_release_that_no_checksum_database_knows_is_refused(
    tmp_path: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy of this test serves no database, and says so."""
    monkeypatch.setenv("GOSUMDB", "sum.golang.org")

    with pytest.raises(Refused, match="cannot be compared") as refused:
        build(tmp_path / "cache", "1.90.1")

    assert "--unverified" in refused.value.hint


def test_a_release_that_there_is_not_is_told(tmp_path: Path, proxy: Proxy) -> None:
    with pytest.raises(InvalidRequest, match=r"there is no Kubernetes 1\.90\.3"):
        build(tmp_path / "cache", "1.90.3", unverified=True)


def test_with_our_sums_it_is_built_offline_and_a_module_that_was_changed_is_not_compiled(
    tmp_path: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sums").mkdir()
    sums = resolved_sums(KUBERNETES_SOURCE, "1.90.1", tmp_path / "cache", Silent(), unverified=True)
    (tmp_path / "sums" / "kubernetes-1.90.1.sum").write_text(sums)
    assert build(tmp_path / "cache", "1.90.1") == "1.90.1"

    proxy.publish("k8s.io/component-base", "v0.90.1", proxy.staging(STAGING.replace("master", "evil")))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "other-machine"))
    with pytest.raises(Refused, match="cannot be compared") as refused:
        build(tmp_path / "elsewhere", "1.90.1")

    assert "checksum mismatch" in refused.value.saw
