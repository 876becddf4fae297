"""`protokube get etcd` and `protokube get coredns`: the commands as a user calls them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from builders.command import Call, process
from fakes.mirror import Mirror, dead_url, serving
from fakes.programs import a_program, all_of_etcd
from protokube.binaries.etcd import ETCD
from protokube.binaries.mirrors import architecture
from protokube.errors import ExitCode


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for product in ("ETCD", "COREDNS"):
        for name in (f"PROTOKUBE_{product}_BIN", f"PROTOKUBE_{product}_MIRROR"):
            monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_etcd_is_taken_from_a_folder_and_found_again(call: Call, here: Path) -> None:
    all_of_etcd(here / "usb", "3.6.8")

    answer = call("get", "etcd", "--from", "usb", "--cache", "cache")
    again = call("get", "etcd", "3.6.8", "--cache", "cache", "-o", "json")

    assert (answer.code, answer.out) == (ExitCode.OK, "etcd 3.6.8 is in cache/etcd/3.6.8\n")
    programs = {name: f"cache/etcd/3.6.8/{name}" for name in ETCD.programs}
    assert json.loads(again.out) == {"version": "3.6.8", "folder": "cache/etcd/3.6.8", "programs": programs}


def test_coredns_is_taken_out_of_its_archive(call: Call, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = a_program(here / "made", "coredns", "CoreDNS-1.14.2\nlinux/amd64, go1.26.0, dd1df4f")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(program, "coredns")
    name = f"coredns_1.14.2_linux_{architecture('CoreDNS')}.tgz"
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    files = {f"/v1.14.2/{name}": packed.getvalue(), f"/v1.14.2/{name}.sha256": f"{digest}  {name}\n".encode()}
    with serving(Mirror(files)) as mirror:
        monkeypatch.setenv("PROTOKUBE_COREDNS_MIRROR", f"{dead_url()} {mirror.url}")
        answer = call("get", "coredns", "1.14.2", "--cache", "cache")

    assert (answer.code, answer.out) == (ExitCode.OK, "CoreDNS 1.14.2 is in cache/coredns/1.14.2\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("etcd",), "there is no etcd in cache yet"),
        (("etcd", "3.6"), "'3.6' is not a version of etcd"),
        (("etcd", "3.4.34"), "etcd 3.4.34 is too old to be downloaded or built"),
        (("etcd", "3.5.2"), "that would be etcd 3.5.2, which loses data when it is killed"),
        (("etcd", "--mirror", "http://mirror.invalid"), "--mirror needs a VERSION"),
        (("coredns", "one"), "'one' is not a version of CoreDNS"),
    ],
)
def test_what_cannot_be_got_is_the_users_mistake(words: tuple[str, ...], message: str, call: Call, here: Path) -> None:
    answer = call("get", *words, "--cache", "cache")

    assert answer.code == ExitCode.INVALID
    assert message in answer.err
    assert "hint:" in answer.err or "want:" in answer.err


@pytest.mark.parametrize("product", ["etcd", "coredns", "kubernetes"])
def test_each_has_a_help_of_its_own(product: str, call: Call) -> None:
    answer = call("get", product, "--help")
    assert answer.out.startswith(f"Usage: protokube get {product} [OPTIONS] [VERSION]\n")
    assert "--unverified" in answer.out


def test_the_shell_offers_what_can_be_got() -> None:
    env = {"_PROTOKUBE_COMPLETE": "bash_complete", "COMP_WORDS": "protokube get ", "COMP_CWORD": "2"}
    offered = [line.partition(",")[2] for line in process(env=env).out.splitlines() if line]
    assert offered == ["coredns", "etcd", "image", "kubernetes"]
