"""The single-file build, on a machine that has a Python and nothing else."""

from __future__ import annotations

import ast
import fcntl
import importlib
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest
from packaging.tags import compatible_tags, cpython_tags

from host.conftest import single_file
from host.emptymachine import PYZ, REPOSITORY, EmptyMachine

CACHE = "/root/.cache/protokube"
USER = 1000

PYTHONS = [(3, 11), (3, 12), (3, 13), (3, 14)]
PLATFORMS = ["manylinux_2_17_x86_64", "manylinux_2_17_aarch64", "musllinux_1_2_x86_64", "musllinux_1_2_aarch64"]

Change = Callable[[Path], object]


def protokube(machine: EmptyMachine, *arguments: str, user: int = 0, **environ: str) -> tuple[str, str]:
    """A start that has to work, as root in root's home unless said otherwise: what it wrote to stdout and stderr."""
    ran = machine.run(PYZ, *(arguments or ("--version",)), user=user, **(environ or {"HOME": "/root"}))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


def unpacked(machine: EmptyMachine, cache: str = CACHE) -> Path:
    """The one directory protokube was unpacked to."""
    (found,) = [path for path in machine.seen_from_outside(cache).iterdir() if path.is_dir()]
    return found


def everything_in(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def keep_lines(file: Path, count: int) -> None:
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:count]))


def wait_until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it did not happen within 30 s"
        time.sleep(0.001)


def build(output: Path, *prefix: str, umask: int = -1, **environ: str) -> bytes:
    command = [*prefix, sys.executable, str(REPOSITORY / "scripts" / "pyz.py"), f"--output={output}"]
    subprocess.run(command, env={**os.environ, **environ}, umask=umask, check=True, capture_output=True)
    return output.read_bytes()


class TestOneFile:
    @pytest.mark.parametrize("module", ["protokube", "click", "yaml", "fsspec", "pip"])
    def test_the_machine_it_runs_on_has_nothing_of_ours(self, machine: EmptyMachine, module: str) -> None:
        assert f"No module named '{module}'" in machine.run("python3", "-c", f"import {module}").stderr

    def test_it_runs_where_there_is_only_a_python(self, machine: EmptyMachine) -> None:
        out, err = protokube(machine, "--help")

        assert "Usage: " in out
        assert err == ""

    def test_it_completes_a_spec_there_as_the_installed_command_does_here(self, whole_machine: EmptyMachine) -> None:
        example = REPOSITORY / "examples" / "minimal.yaml"
        shutil.copy(example, whole_machine.seen_from_outside("/root"))
        here = [sys.executable, "-m", "protokube", "complete", str(example)]

        out, _ = protokube(whole_machine, "complete", "/root/minimal.yaml")

        assert out == subprocess.run(here, capture_output=True, text=True, check=True).stdout

    def test_the_exit_code_is_the_one_of_the_command(self, whole_machine: EmptyMachine) -> None:
        assert whole_machine.run(PYZ, "no-such-command", HOME="/root").returncode == 2

    def test_it_brings_the_compiled_yaml_reader(self, used_machine: EmptyMachine) -> None:
        inside = f"{CACHE}/{unpacked(used_machine).name}"

        ran = used_machine.run("python3", "-c", "import yaml; print(yaml.__with_libyaml__)", PYTHONPATH=inside)

        assert ran.stdout == "True\n"

    def test_a_library_the_user_put_on_the_path_does_not_replace_ours(self, machine: EmptyMachine) -> None:
        machine.seen_from_outside("/home/click.py").write_text("raise SystemExit('the wrong click')")

        protokube(machine, HOME="/root", PYTHONPATH="/home")


class TestUnpacking:
    def test_it_is_unpacked_once_and_compiled_for_its_owner_alone(self, machine: EmptyMachine) -> None:
        protokube(machine, HOME="/root", PYTHONDONTWRITEBYTECODE="1")

        place = unpacked(machine)
        sources = list(place.rglob("*.py"))
        assert [mode(path) for path in (place.parent.parent, place.parent, place)] == [0o700] * 3
        assert [path for path in sources if not list(path.parent.glob(f"__pycache__/{path.stem}.*.pyc"))] == []

    def test_a_second_start_unpacks_nothing(self, new_machine: EmptyMachine) -> None:
        protokube(new_machine)
        before = everything_in(new_machine.seen_from_outside(CACHE))

        protokube(new_machine)

        assert everything_in(new_machine.seen_from_outside(CACHE)) == before

    def test_starts_at_once_all_work_and_leave_one_copy(self, new_machine: EmptyMachine) -> None:
        running = [new_machine.start(PYZ, "--version", HOME="/root") for _ in range(6)]

        said = [(*start.communicate(timeout=60), start.returncode) for start in running]

        assert len(set(said)) == 1, said
        assert said[0][1:] == ("", 0)
        assert unpacked(new_machine).is_dir()

    def test_a_start_that_waited_for_another_takes_what_that_one_unpacked(self, used_machine: EmptyMachine) -> None:
        place = unpacked(used_machine)
        away = place.rename(place.with_name("away"))
        with (place.parent / ".lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            waiting = used_machine.start(PYZ, "--version", HOME="/root")
            # The kernel's list of locks: "1: -> FLOCK ADVISORY WRITE 4242 fe:00:131 0 EOF" is one that waits.
            inode = place.parent.joinpath(".lock").stat().st_ino
            wait_until(lambda: re.search(rf"-> FLOCK .*:{inode} ", Path("/proc/locks").read_text()))
            away.rename(place)
            before = everything_in(place.parent)

        assert waiting.communicate(timeout=60)[1] == ""
        assert waiting.returncode == 0
        assert everything_in(place.parent) == before

    def test_a_start_killed_half_way_leaves_nothing_behind(self, new_machine: EmptyMachine) -> None:
        cache = new_machine.seen_from_outside(CACHE)

        def killed_half_way() -> bool:
            """It may have come to its end before we killed it: then there is nothing to see, and it is played again."""
            shutil.rmtree(cache, ignore_errors=True)
            killed = new_machine.start(PYZ, "--version", HOME="/root")
            wait_until(lambda: list(cache.glob(".new-*/*")) or killed.poll() is not None)
            killed.kill()
            killed.communicate()
            return [path.name[:5] for path in cache.iterdir() if path.is_dir()] == [".new-"]

        wait_until(killed_half_way)

        protokube(new_machine)

        assert not unpacked(new_machine).name.startswith(".new-")

    @pytest.mark.parametrize(
        "damage",
        [
            pytest.param(lambda place: (place / "click" / "core.py").unlink(), id="file-missing"),
            pytest.param(lambda place: os.truncate(place / "click" / "core.py", 100), id="file-cut"),
            pytest.param(lambda place: shutil.rmtree(place / "yaml"), id="folder-missing"),
            pytest.param(lambda place: (place / ".protokube-files").unlink(), id="stamp-missing"),
            pytest.param(lambda place: os.truncate(place / ".protokube-files", 0), id="stamp-empty"),
            pytest.param(lambda place: os.truncate(place / ".protokube-files", 500), id="stamp-cut"),
            pytest.param(lambda place: keep_lines(place / ".protokube-files", 9), id="stamp-cut-between-lines"),
        ],
    )
    def test_a_damaged_copy_is_unpacked_again(self, used_machine: EmptyMachine, damage: Change) -> None:
        place = unpacked(used_machine)
        whole = {path.relative_to(place): path.stat().st_size for path in place.rglob("*") if path.is_file()}
        damage(place)

        assert protokube(used_machine, "--help")[1] == ""

        place = unpacked(used_machine)
        assert {path.relative_to(place): path.stat().st_size for path in place.rglob("*") if path.is_file()} == whole


class TestWhereItIsUnpacked:
    @pytest.mark.parametrize(
        ("asked", "xdg", "place"),
        [
            ("/tmp/asked", "/tmp/xdg", "/tmp/asked"),
            ("", "/tmp/xdg", "/tmp/xdg/protokube"),
            ("", "", CACHE),
            ("", "relative/paths/count/as/unset", CACHE),
        ],
    )
    def test_what_the_user_asks_for_comes_before_xdg_and_home(
        self, new_machine: EmptyMachine, asked: str, xdg: str, place: str
    ) -> None:
        protokube(new_machine, PROTOKUBE_CACHE=asked, XDG_CACHE_HOME=xdg, HOME="/root")

        assert unpacked(new_machine, place).is_dir()

    def test_a_service_of_root_without_a_home_uses_var_cache(self, new_machine: EmptyMachine) -> None:
        assert protokube(new_machine, LANG="C")[1] == ""

        assert mode(unpacked(new_machine, "/var/cache/protokube").parent) == 0o700

    def test_root_with_the_home_of_a_user_leaves_that_home_alone(self, new_machine: EmptyMachine) -> None:
        home = new_machine.seen_from_outside("/home/user")
        home.mkdir()
        os.chown(home, USER, USER)

        assert protokube(new_machine, HOME="/home/user")[1] == ""

        assert list(home.iterdir()) == []
        assert unpacked(new_machine, "/var/cache/protokube").is_dir()

    def test_a_user_unpacks_into_their_own_home(self, new_machine: EmptyMachine) -> None:
        home = new_machine.seen_from_outside("/home/user")
        home.mkdir()
        os.chown(home, USER, USER)

        assert protokube(new_machine, user=USER, HOME="/home/user")[1] == ""

        assert unpacked(new_machine, "/home/user/.cache/protokube").stat().st_uid == USER

    def test_a_cache_that_cannot_be_written_costs_time_and_a_warning(self, new_machine: EmptyMachine) -> None:
        _, err = protokube(new_machine, PROTOKUBE_CACHE="/opt/cache")

        assert err.startswith("warning: protokube has no cache directory, so it is unpacked anew at every start\n")
        assert "Read-only file system: '/opt/cache'" in err
        assert "hint: set PROTOKUBE_CACHE to a directory that only you can write to" in err
        assert list(new_machine.seen_from_outside("/tmp").iterdir()) == []

    def test_nowhere_to_write_at_all_is_an_error_that_names_every_place(self, new_machine: EmptyMachine) -> None:
        new_machine.seen_from_outside("/tmp").chmod(0o755)

        ran = new_machine.run(PYZ, "--version", user=USER, HOME="/nowhere")

        assert ran.returncode == 4
        assert ran.stderr.startswith("error: there is no room to unpack protokube\n")
        assert "'/nowhere'" in ran.stderr
        assert "'/tmp'" in ran.stderr


class TestTrust:
    """Whoever can write where we import from runs code as us."""

    @pytest.fixture
    def trap(self, used_machine: EmptyMachine) -> Path:
        """A copy that looks whole and does something else, in a cache that is still ours."""
        trap = used_machine.seen_from_outside("/home/cache") / unpacked(used_machine).name
        (trap / "protokube" / "cli").mkdir(parents=True)
        (trap / "protokube" / "cli" / "main.py").write_text("def main(): print('stolen')")
        (trap / ".protokube-files").write_text("0\n")
        return trap

    def test_the_trap_works_while_the_cache_is_ours(self, used_machine: EmptyMachine, trap: Path) -> None:
        assert protokube(used_machine, PROTOKUBE_CACHE="/home/cache")[0] == "stolen\n"

    @pytest.mark.parametrize(
        ("let_others_in", "why"),
        [
            pytest.param(lambda trap: os.chown(trap, USER, USER), "belongs to user 1000", id="owner"),
            pytest.param(lambda trap: trap.chmod(0o777), "can be written by others (mode 777)", id="all"),
            pytest.param(lambda trap: trap.chmod(0o770), "can be written by others (mode 770)", id="group"),
            pytest.param(lambda trap: trap.chmod(0o1777), "can be written by others (mode 1777)", id="sticky"),
            pytest.param(lambda trap: os.chown(trap.parent, USER, USER), "belongs to user 1000", id="owner-above"),
            pytest.param(lambda trap: trap.parent.chmod(0o777), "can be written by others", id="all-above"),
            pytest.param(lambda trap: trap.parent.chmod(0o1777), "can be written by others", id="sticky-above"),
            pytest.param(lambda trap: trap.parents[1].chmod(0o777), "/home can be written by others", id="far-above"),
        ],
    )
    def test_a_cache_that_others_can_change_is_not_used(
        self, used_machine: EmptyMachine, trap: Path, let_others_in: Change, why: str
    ) -> None:
        let_others_in(trap)

        out, err = protokube(used_machine, PROTOKUBE_CACHE="/home/cache")

        assert "stolen" not in out
        assert why in err

    def test_a_user_does_not_take_what_root_unpacked(self, used_machine: EmptyMachine, trap: Path) -> None:
        out, err = protokube(used_machine, user=USER, PROTOKUBE_CACHE="/home/cache")

        assert "stolen" not in out
        assert "belongs to user 0, and we are user 1000" in err

    def test_a_link_to_such_a_cache_is_not_used_either(self, used_machine: EmptyMachine, trap: Path) -> None:
        os.chown(trap.parent, USER, USER)
        used_machine.seen_from_outside("/root/link").symlink_to("/home/cache")

        out, err = protokube(used_machine, PROTOKUBE_CACHE="/root/link")

        assert "stolen" not in out
        assert "/home/cache belongs to user 1000" in err

    def test_nothing_is_written_through_a_link_that_others_left_in_a_shared_directory(
        self, new_machine: EmptyMachine
    ) -> None:
        precious = new_machine.seen_from_outside("/root/precious")
        precious.write_text("still here")
        new_machine.seen_from_outside("/tmp/.lock").symlink_to("/root/precious")

        _, err = protokube(new_machine, PROTOKUBE_CACHE="/tmp")

        assert precious.read_text() == "still here"
        assert "/tmp can be written by others (mode 1777)" in err

    def test_our_own_directory_in_tmp_is_used(self, new_machine: EmptyMachine) -> None:
        said = [protokube(new_machine, PROTOKUBE_CACHE="/tmp/cache") for _ in range(2)]

        assert [err for _, err in said] == ["", ""]
        assert unpacked(new_machine, "/tmp/cache").is_dir()


class TestMachinesItDoesNotFit:
    @pytest.fixture
    def unpack(self, pyz: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
        """What the file does to unpack itself, taken from the file."""
        monkeypatch.syspath_prepend(str(pyz))
        yield importlib.import_module("unpack")
        for name in ("unpack", "start", "contents"):
            del sys.modules[name]

    @pytest.mark.parametrize("platform_tag", PLATFORMS)
    @pytest.mark.parametrize("python", PYTHONS)
    def test_every_machine_we_support_finds_one_wheel_of_everything(
        self, pyz_for_all: Path, unpack: ModuleType, python: tuple[int, int], platform_tag: str
    ) -> None:
        tags = [*cpython_tags(python, platforms=[platform_tag]), *compatible_tags(python, platforms=[platform_tag])]
        with ZipFile(pyz_for_all) as box:
            wheels = [name.removeprefix("wheels/") for name in box.namelist() if name.startswith("wheels/")]

        chosen = unpack.fitting(wheels, tags)

        compiled = {wheel.split("-")[0]: wheel for wheel in chosen if not wheel.endswith("-none-any.whl")}
        assert len(chosen) == len({wheel.split("-")[0] for wheel in wheels})
        assert sorted(compiled) == ["cffi", "cryptography", "msgspec", "pyyaml"]
        assert [wheel for wheel in compiled.values() if platform_tag not in wheel] == []
        assert "-cp{}{}-".format(*python) in compiled["pyyaml"]
        assert "-abi3-" in compiled["cryptography"]

    def test_another_machine_is_told_what_it_is_and_what_is_inside(self, machine: EmptyMachine, tmp_path: Path) -> None:
        other = {"x86_64": "aarch64", "aarch64": "x86_64"}[platform.machine()]
        foreign = single_file(tmp_path / "foreign.pyz", f"--for={other}-musl")

        ran = replace(machine, pyz=foreign).run("python3", PYZ, "--version", HOME="/root")

        version = machine.run("python3", "--version").stdout.split()[1]
        lacking = "it has no cffi, cryptography, msgspec, pyyaml for it"
        assert ran.returncode == 4
        assert ran.stderr.splitlines()[:1] == [f"error: {PYZ} does not fit this machine: {lacking}"]
        assert f"saw:  CPython {version} on {platform.machine()} (cp3" in ran.stderr
        assert f"want: cp311, cp312, cp313, cp314 on musllinux_1_2_{other}\n" in ran.stderr
        assert [path.name for path in machine.seen_from_outside(CACHE).iterdir()] == [".lock"]

    def test_a_file_damaged_on_its_way_says_so(self, machine: EmptyMachine, pyz: Path, tmp_path: Path) -> None:
        content = bytearray(pyz.read_bytes())
        with ZipFile(pyz) as box:
            (click,) = [entry for entry in box.infolist() if entry.filename.startswith("wheels/click")]
        content[click.header_offset + click.file_size // 2] ^= 0xFF
        damaged = tmp_path / "damaged.pyz"
        damaged.write_bytes(content)
        damaged.chmod(0o755)

        ran = replace(machine, pyz=damaged).run(PYZ, "--version", HOME="/root")

        assert ran.returncode == 4
        assert ran.stderr.startswith(f"error: {PYZ} is damaged\n  saw:  Bad CRC-32 for file 'wheels/click")

    def test_the_first_lines_parse_on_an_old_python(self, pyz: Path) -> None:
        with ZipFile(pyz) as box:
            ast.parse(box.read("__main__.py"), feature_version=(3, 6))

    @pytest.mark.parametrize(
        ("version", "system", "seen"),
        [
            ((2, 7, 18), "linux2", "Python 2.7 on linux2"),
            ((3, 10, 13), "linux", "Python 3.10 on linux"),
            ((3, 13, 0), "darwin", "Python 3.13 on darwin"),
        ],
    )
    def test_an_old_python_or_another_system_gets_one_sentence(
        self, pyz: Path, version: tuple[int, ...], system: str, seen: str
    ) -> None:
        refusal = runpy.run_path(str(pyz), run_name="gate")["refusal"]

        wanted = "error: protokube needs Python 3.11 or newer on Linux"
        assert refusal(version, system) == f"{wanted}, and {sys.executable} is {seen}"

    @pytest.mark.parametrize("version", [(3, 11, 0), (3, 14, 1), (4, 0, 0)])
    def test_a_new_enough_python_passes_the_gate(self, pyz: Path, version: tuple[int, ...]) -> None:
        assert runpy.run_path(str(pyz), run_name="gate")["refusal"](version, "linux") == ""


class TestBuild:
    def test_equal_inputs_give_equal_bytes(self, tmp_path: Path) -> None:
        one = build(tmp_path / "one.pyz", umask=0o022, TZ="UTC")
        other = build(
            tmp_path / "other.pyz", umask=0o077, TZ="Asia/Tokyo", PYTHONHASHSEED="7", SOURCE_DATE_EPOCH="1700000000"
        )

        assert one == other

    def test_the_second_build_needs_no_network(self, pyz: Path, tmp_path: Path) -> None:
        assert build(tmp_path / "offline.pyz", "unshare", "--net")

    def test_the_file_is_executable_by_everyone_and_written_by_its_owner(self, pyz: Path) -> None:
        assert mode(pyz) == 0o755
        assert pyz.read_bytes().startswith(b"#!/usr/bin/env python3\n")
