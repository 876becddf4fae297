"""What a release gives: one file that does everything, a Debian package, a container image."""

from __future__ import annotations

import configparser
import hashlib
import io
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import deb as packing
import manpages
import pytest

from clusters.real import RealCluster
from host.emptymachine import REPOSITORY
from protokube import __version__
from protokube.cli.main import COMMANDS
from protokube.images import archive, build, reading

INSTALL = """
overlay=$1 root=$2 deb=$3
mkdir -p "$overlay/upper" "$overlay/work" "$overlay/root"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$overlay/upper,workdir=$overlay/work" "$overlay/root"
mkdir -p "$overlay/root/var/lib/dpkg/info" "$overlay/root/var/lib/dpkg/updates"
touch "$overlay/root/var/lib/dpkg/status"
cp "$(readlink -f /bin/sh)" "$overlay/root/usr/bin/sh"  # the machine has a Python and little else
cp /usr/bin/find "$overlay/root/usr/bin/find"
dpkg="dpkg --root=$overlay/root --force-depends"
$dpkg -i "$deb" >&2
chroot "$overlay/root" /usr/bin/protokube version --output json
$dpkg -r protokube >&2
find "$overlay/root/usr/lib/protokube" >&2 || echo "nothing is left" >&2
"""


def built(script: str, output: Path, *options: str) -> Path:
    command = [sys.executable, str(REPOSITORY / "scripts" / script), f"--output={output}", *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return output


@pytest.fixture(scope="module")
def deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("deb.py", tmp_path_factory.mktemp("deb") / "protokube.deb")


@pytest.fixture(scope="module")
def inside(deb: Path) -> Iterator[tarfile.TarFile]:
    """The files of the package."""
    data = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        yield files


def content(files: tarfile.TarFile, name: str) -> bytes:
    found = files.extractfile(f"./{name}")
    assert found is not None
    with found:
        return found.read()


class TestSingleFile:
    def test_it_brings_up_a_cluster_that_heals_and_takes_it_away(self, pyz: Path, tmp_path: Path) -> None:
        cache = tmp_path / "cache"
        with RealCluster() as cluster:
            cluster.within, cluster.program = ["env", f"PROTOKUBE_CACHE={cache}"], [str(pyz)]
            cluster.up()
            (place,) = [each for each in cache.iterdir() if (each / "protokube").is_dir()]  # others: programs, as etcd
            commands = [Path(f"/proc/{host['pid']}/cmdline").read_bytes() for host in cluster.hosts()]
            drill = cluster.run("drill", "kill-master", "--cluster", cluster.name)
            about = json.loads(cluster.run("version", "-o", "json").out)

        assert [bytes(place) in command for command in commands] == [True] * 3
        assert drill.code == 0, drill.out + drill.err
        assert about["protokube"] == {
            "version": __version__, "path": str(place / "protokube"), "installed": "folder",
        }  # fmt: skip

    def test_without_a_cache_it_makes_no_cluster_since_that_would_lose_its_program(
        self, pyz: Path, tmp_path: Path
    ) -> None:
        state, cache = tmp_path / "state", tmp_path / "open"
        cache.mkdir(mode=0o777)
        cache.chmod(0o777)
        places = {"PROTOKUBE_CACHE": str(cache), "PROTOKUBE_STATE": str(state)}

        ran = subprocess.run(
            [pyz, "up", "--kubernetes", "none"], capture_output=True, text=True, env={**os.environ, **places}
        )

        assert ran.returncode == 4
        assert "error: a cluster outlives this command, and would lose its program" in ran.stderr
        assert not state.exists()


class TestDebianPackage:
    def test_it_is_installed_runs_and_leaves_nothing(self, deb: Path, empty_root: Path, tmp_path: Path) -> None:
        shell = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", INSTALL, "sh"]

        ran = subprocess.run([*shell, tmp_path, empty_root, deb], capture_output=True, text=True)

        assert ran.returncode == 0, ran.stderr
        found = json.loads(ran.stdout)["protokube"]
        assert found == {"version": __version__, "path": "/usr/lib/protokube/protokube", "installed": "folder"}
        assert ran.stderr.endswith("nothing is left\n")

    def test_its_files_are_roots_and_nobody_else_can_change_them(self, inside: tarfile.TarFile) -> None:
        odd = [each.name for each in inside if (each.uid, each.gid) != (0, 0) or each.mode not in (0o755, 0o644)]
        programs = [each.name for each in inside if each.isfile() and each.mode == 0o755]

        assert odd == []
        assert programs == ["./usr/bin/protokube"]
        assert not [each.name for each in inside if not (each.isfile() or each.isdir()) or "__pycache__" in each.name]

    def test_the_sums_are_those_of_its_files(self, deb: Path, inside: tarfile.TarFile) -> None:
        told = subprocess.run(["dpkg-deb", "-I", deb, "md5sums"], capture_output=True, text=True, check=True).stdout

        sums = {name: digest for digest, _, name in (line.partition("  ") for line in told.splitlines())}
        files = [each.name.removeprefix("./") for each in inside if each.isfile()]
        assert sums == {name: hashlib.md5(content(inside, name)).hexdigest() for name in files}

    def test_it_tells_what_it_needs(self, deb: Path) -> None:
        told = subprocess.run(["dpkg-deb", "-f", deb], capture_output=True, text=True, check=True).stdout

        fields = dict(line.split(": ", 1) for line in told.splitlines() if re.match(r"[A-Z]", line))
        assert (fields["Package"], fields["Version"]) == ("protokube", __version__)
        assert fields["Architecture"] == build.ARCHITECTURES[platform.machine()]
        assert fields["Depends"].startswith("python3 (>= 3.11), python3 (<< 3.15~), ")
        assert int(fields["Installed-Size"]) < 80_000

    def test_every_command_has_a_manual_page_and_every_shell_its_completion(self, inside: tarfile.TarFile) -> None:
        names = inside.getnames()

        assert [each for each in COMMANDS if f"./usr/share/man/man1/protokube-{each}.1.gz" not in names] == []
        assert "./usr/share/man/man1/protokube-get-kubernetes.1.gz" in names
        for place in packing.COMPLETIONS.values():
            assert b"_PROTOKUBE_COMPLETE" in content(inside, place)

    def test_compiled_modules_are_there_for_every_python(self, inside: tarfile.TarFile) -> None:
        found = [each for each in inside.getnames() if re.search(r"/yaml/_yaml\.cpython-31\d-", each)]

        assert sorted(re.findall(r"cpython-(\d+)", " ".join(found))) == ["311", "312", "313", "314"]
        assert len([each for each in inside.getnames() if each.endswith(".abi3.so")]) == 1

    def test_the_unit_starts_a_command_that_there_is_and_is_watched(self, inside: tarfile.TarFile) -> None:
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment]
        unit.read_string(content(inside, "usr/lib/systemd/system/protokube-agent.service").decode())
        program, *arguments = shlex.split(unit["Service"]["ExecStart"])

        assert f".{program}" in inside.getnames()
        assert arguments == ["agent"]
        assert "agent" in COMMANDS
        assert (unit["Service"]["Type"], unit["Service"]["WatchdogSec"]) == ("notify", "3min")
        assert unit["Unit"]["ConditionPathExists"] == "/etc/protokube/agent.json"

    def test_equal_inputs_give_equal_bytes(self, tmp_path: Path) -> None:
        files = {"usr/bin/protokube": b"#!/bin/sh\n", "usr/share/doc/protokube/copyright": b"ours\n"}
        made = []
        for number, mask in enumerate((0o022, 0o077)):
            before = os.umask(mask)
            packing.write(tmp_path / f"{number}.deb", files, packing.control("amd64", 1000))
            os.umask(before)
            made.append((tmp_path / f"{number}.deb").read_bytes())

        assert made[0] == made[1]


class TestManualPages:
    def test_no_line_of_a_page_is_a_request_by_accident(self) -> None:
        requests = ("TH", "SH", "B", "BR", "TP", "PP", "nf", "fi")
        lines = [line for text in manpages.pages().values() for line in text.splitlines()]

        assert [line for line in lines if line[:1] in (".", "'") and line[1:].split(" ")[0] not in requests] == []

    def test_a_page_tells_options_and_what_is_below(self) -> None:
        page = manpages.pages()["protokube-token.1"]

        assert ".SH COMMANDS\n.TP\n.B create\n" in page
        assert ".BR protokube\\-token\\-create (1),\n" in page
        assert ".B \\-h, \\-\\-help\nShow this message and exit." in page

    @pytest.mark.parametrize(
        ("text", "shown"), [(".hidden", "\\&.hidden"), ("'quoted'", "\\&'quoted'"), ("a\\b --c", "a\\eb \\-\\-c")]
    )
    def test_text_is_shown_as_it_is(self, text: str, shown: str) -> None:
        assert manpages.escaped(text) == shown


class TestImage:
    def test_it_has_every_command_and_runs_without_the_machine(self, tmp_path: Path) -> None:
        file = built("image.py", tmp_path / "image.tar")

        verdict = archive.judge(reading.read_archive(file), build.ARCHITECTURES[platform.machine()])
        name = f"docker.io/protokube/protokube:{__version__}"
        assert (dict(verdict.names), verdict.problems) == ({name: name}, ())

        root = unpacked(file, tmp_path / "root")
        told = subprocess.run(
            ["chroot", root, "/usr/local/bin/protokube", "version", "-o", "json"], capture_output=True, text=True
        )
        assert json.loads(told.stdout)["protokube"]["path"] == "/usr/local/lib/protokube/protokube", told.stderr
        agent = ["chroot", str(root), "/usr/local/bin/protokube", "agent", "--config", "/nowhere"]
        assert "error: " in subprocess.run(agent, capture_output=True, text=True).stderr

    def test_the_dockerfile_copies_what_is_there_and_installs_what_the_locks_pin(self) -> None:
        lines = (REPOSITORY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
        copied = [word for line in lines if re.match("COPY (?!--from)", line) for word in line.split()[1:-1]]
        let_in = (REPOSITORY / ".dockerignore").read_text().split()
        installs = [each for line in lines for each in line.split("&&") if "pip install" in each]

        assert copied
        assert [name for name in copied if not (REPOSITORY / name).exists() or f"!{name}" not in let_in] == []
        assert all("--no-deps" in each for each in installs)
        assert len([each for each in installs if "--require-hashes" in each]) == len(installs) - 1


def unpacked(file: Path, root: Path) -> Path:
    """The only layer of an image."""
    with tarfile.open(file) as image:
        (manifest,) = json.load(image.extractfile("manifest.json"))  # type: ignore[arg-type]
        (layer,) = manifest["Layers"]
        with tarfile.open(fileobj=image.extractfile(layer)) as files:
            files.extractall(root, filter="tar")
    return root
