from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from protokube.errors import Refused
from protokube.nodeup import host_facts
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.host_facts import chrony, parse_policy, parse_release, parse_repoquery, read_facts, refuse_unfit

POLICY = """containerd:
  Installed: (none)
  Candidate: 1.6.20~ds1-1+deb12u1
  Version table:
     1.6.20~ds1-1+deb12u1 500
gone:
  Installed: (none)
  Candidate: (none)
  Version table:
runc:
  Installed: 1.1.5
  Candidate: 1.1.5
"""
STATUS = "Package: runc\nStatus: install ok installed\nArchitecture: all\nVersion: 1.1.5\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, content in {
        "usr/lib/os-release": 'ID="debian"\nVERSION_ID=12\nID_LIKE="one two"\n',
        "etc/hostname": "image\n",
        "usr/bin/apt-get": "",
        "var/lib/dpkg/status": STATUS,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_of_an_image_only_its_files_count(root: Path) -> None:
    assert read_facts(root, names=("runc",)) == Facts(
        distribution="debian",
        distribution_version="12",
        like=("one", "two"),
        processor=platform.machine(),
        package_manager=PackageManager.APT,
        available=(("runc", "1.1.5"),),
        host_name="image",
        image=True,
    )


def test_a_machine_is_of_the_cluster_that_its_record_names(root: Path) -> None:
    record = root / "etc/protokube/machine.json"
    record.parent.mkdir()
    record.write_text('{"cluster": "one.example.com", "nodeName": "rack-1", "role": "Node"}')

    assert (read_facts(root, names=()).cluster, read_facts(root, names=()).node_name) == ("one.example.com", "rack-1")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cluster": 1}', "\x00"])
def test_a_record_that_cannot_be_read_is_written_again(root: Path, content: str) -> None:
    (root / "etc/protokube").mkdir()
    (root / "etc/protokube/machine.json").write_text(content)

    assert (read_facts(root, names=()).cluster, read_facts(root, names=()).node_name) == ("", "")


def test_the_time_service_of_an_image_is_the_one_that_is_enabled(root: Path) -> None:
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    assert read_facts(root, names=()).time_service == ""

    (wants / "chrony.service").symlink_to("/lib/systemd/system/chrony.service")

    assert read_facts(root, names=()).time_service == "chrony.service"


def test_lists_are_lacking_until_apt_has_some_or_what_they_decide_is_installed(root: Path) -> None:
    facts = read_facts(root, names=())
    assert host_facts.lacks_lists(root, facts)

    installed = replace(facts, available=(("containerd", "1.7"), ("containernetworking-plugins", "1.1")))
    assert not host_facts.lacks_lists(root, installed)
    assert not host_facts.lacks_lists(root, replace(facts, package_manager=PackageManager.DNF))

    (root / "var/lib/apt/lists").mkdir(parents=True)
    (root / "var/lib/apt/lists/mirror_dists_stable_main_binary-amd64_Packages").touch()
    assert not host_facts.lacks_lists(root, facts)


def test_a_link_that_leads_out_of_the_image_is_not_followed(root: Path, tmp_path: Path) -> None:
    (root / "etc/os-release").symlink_to("/etc/os-release")

    assert read_facts(root, names=("runc",)).distribution == "debian"


def test_a_folder_that_is_no_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is no root of a system"):
        read_facts(tmp_path)


def test_os_release_is_read_as_a_shell_does() -> None:
    content = '# ID=no\nID=debian\nNAME=\'It is\'\nPRETTY_NAME="A \\"B\\" \\$C"\nbad line\nEMPTY=\n =x\n'

    assert parse_release(content) == {"ID": "debian", "NAME": "It is", "PRETTY_NAME": 'A "B" $C', "EMPTY": ""}


def test_candidates_of_apt_and_dnf_are_read() -> None:
    assert parse_policy(POLICY) == {"containerd": "1.6.20~ds1-1+deb12u1", "runc": "1.1.5"}
    assert parse_policy("N: Unable to locate package x\n") == {}
    assert parse_repoquery("containerd.io\t1.6.20-3\n\nnoise\n") == {"containerd.io": "1.6.20-3"}


def test_swap_memory_cgroups_and_containers_come_from_their_files(tmp_path: Path) -> None:
    assert (host_facts.swap(tmp_path), host_facts.memory(tmp_path)) == (False, 0)
    for name in ("proc", "sys/fs/cgroup", "run/systemd"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/swaps").write_text("Filename Type Size Used Priority\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal:        2048 kB\nMemFree: 1 kB\n")
    assert (host_facts.swap(tmp_path), host_facts.memory(tmp_path)) == (False, 2 << 20)
    (tmp_path / "proc/swaps").write_text("Filename Type Size Used Priority\n/swap file 1 0 -2\n")
    assert host_facts.swap(tmp_path)

    assert not host_facts.is_cgroup2(tmp_path)
    (tmp_path / "sys/fs/cgroup/unified").mkdir()
    (tmp_path / "sys/fs/cgroup/unified/cgroup.controllers").touch()
    assert not host_facts.is_cgroup2(tmp_path)  # a hybrid one
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").touch()
    assert host_facts.is_cgroup2(tmp_path)

    assert not host_facts.is_container(tmp_path)
    (tmp_path / "run/systemd/container").touch()
    assert host_facts.is_container(tmp_path)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("C0A80001,ntp,3,1700000000.0,-0.000123,0.1,0.2,-1.0,0.0,0.1,0.02,0.001,64.0,Normal\n", 0.000123),
        ("7F7F0101,,0,0.0,3600.5,0,0,0,0,0,0,0,0,Not synchronised\n", None),
        ("506 Cannot talk to daemon\n", None),
        ("", None),
        ("a,b,c,d,e,f,g,h,i,j,k,l,m,Normal", None),
    ],
)
def test_chrony_tells_how_far_the_clock_is_off(answer: str, error: float | None) -> None:
    assert chrony(answer) == error


def test_a_clock_that_timesyncd_keeps_is_right(tmp_path: Path) -> None:
    (tmp_path / "run/systemd/timesync").mkdir(parents=True)
    (tmp_path / "run/systemd/timesync/synchronized").touch()

    assert host_facts.clock_error(tmp_path, "unix:path=/nowhere") == 0.0


def test_a_distribution_without_a_known_package_manager_is_refused(root: Path) -> None:
    (root / "usr/bin/apt-get").unlink()

    with pytest.raises(Refused, match="debian is not known here: it has neither apt nor dnf"):
        refuse_unfit(read_facts(root, names=()), root)
