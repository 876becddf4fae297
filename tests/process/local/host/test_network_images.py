"""Images of kube-proxy and of the stand-in for CoreDNS: their content, from packages in the cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from protokube.images import clusterdns, proxyimage
from protokube.images.build import libraries
from protokube.images.packages import Package, libraries_of, unpack_whole

SIMULATED = """Reading package lists...
The following NEW packages will be installed:
  conntrack libnetfilter-conntrack3 libnfnetlink0
Inst libnfnetlink0 (1.0.2-2 Debian:12.14/oldstable [amd64])
Inst libnetfilter-conntrack3 (1.0.9-3 Debian:12.14/oldstable [amd64])
Inst bind9-libs (1:9.18.49-1 Debian:12.14/oldstable [amd64])
Inst netbase (6.4 Debian:12.14/oldstable [all])
Inst conntrack (1:1.4.7-1+b2 Debian:12.14/oldstable [amd64])
Conf libnfnetlink0 (1.0.2-2 Debian:12.14/oldstable [amd64])
"""


def a_program(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(shutil.which("true") or "", place)
    return place


def a_package(root: Path, *programs: str) -> Package:
    for program in programs:
        a_program(root / program)
    return Package(root=root, libraries=())


def test_the_libraries_that_come_with_a_package_are_read_from_what_apt_would_do() -> None:
    assert list(libraries_of(SIMULATED)) == ["bind9-libs", "libnetfilter-conntrack3", "libnfnetlink0"]


def test_what_is_in_the_cache_is_asked_for_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for name in ("iptables", "libmnl0"):
        (tmp_path / name).mkdir()
    (tmp_path / ".iptables.libraries").write_text("libmnl0\n")
    found = unpack_whole("iptables", tmp_path)
    assert (found.root, found.libraries) == (tmp_path / "iptables", (tmp_path / "libmnl0",))


def test_kube_proxy_finds_the_tools_by_the_names_it_calls_them(tmp_path: Path) -> None:
    tables = a_package(tmp_path / "iptables", "usr/sbin/xtables-nft-multi")
    plugin = tables.root / "usr/lib/some-linux-gnu/xtables/libxt_statistic.so"
    plugin.parent.mkdir(parents=True)
    shutil.copy(Path(sys.executable).resolve(), plugin)  # it needs more than the programs do
    tracking = a_package(tmp_path / "conntrack", "usr/sbin/conntrack")
    made = proxyimage.image("kube-proxy:v1", a_program(tmp_path / "kube-proxy"), tables, tracking)
    for program in ("kube-proxy", "iptables", "iptables-save", "iptables-restore", "ip6tables-restore", "conntrack"):
        assert made.files[f"/usr/local/bin/{program}"].is_file()
    assert made.files["/usr/lib/some-linux-gnu/xtables/libxt_statistic.so"] == plugin
    assert set(libraries(plugin)) <= set(made.files)
    assert not set(libraries(plugin)) <= set(libraries(tables.root / "usr/sbin/xtables-nft-multi"))


def test_coredns_is_called_with_the_arguments_of_its_pod(tmp_path: Path) -> None:
    made = clusterdns.image("registry.k8s.io/coredns/coredns:v1.14.2", program := a_program(tmp_path / "coredns"))
    (entry,) = made.entry
    assert made.files[entry] == program
    assert made.command == ()


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("registry.k8s.io/coredns/coredns:v1.14.2", "1.14.2"),
        ("registry.k8s.io/coredns:1.7.0", "1.7.0"),
        ("registry.example.com:5000/coredns:latest", ""),
        ("registry.example.com:5000/coredns", ""),
    ],
)
def test_the_name_of_an_image_promises_a_version_or_none(name: str, version: str) -> None:
    assert clusterdns.version_in(name) == version


def test_the_stand_in_runs_its_script_whatever_arguments_coredns_would_get(tmp_path: Path) -> None:
    server = a_package(tmp_path / "dnsmasq-base", "usr/sbin/dnsmasq")
    kubectl, busybox = a_program(tmp_path / "kubectl"), a_program(tmp_path / "busybox")
    made = clusterdns.stand_in("coredns:1", kubectl, busybox, server)
    (entry,) = made.entry
    interpreter = made.texts[entry].splitlines()[0].removeprefix("#!").split()[0]
    assert made.files[interpreter] == busybox
    assert {"/usr/local/bin/kubectl", "/usr/local/bin/dnsmasq"} <= set(made.files)
    assert made.command == ()


def test_the_script_of_the_stand_in_is_one(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(clusterdns.SCRIPT)
    checked = subprocess.run(["sh", "-n", str(tmp_path / "script")], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
