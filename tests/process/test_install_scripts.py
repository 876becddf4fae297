"""What `make up` does before `up`: progress while it installs, and a link on the PATH; and what `make clean` takes."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
NEEDED = ("link", "clean", "in_use", "progress.sh")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the scripts and an environment whose command says where it is."""
    root = tmp_path / "checkout"
    (root / "scripts").mkdir(parents=True)
    for name in NEEDED:
        shutil.copy(SCRIPTS / name, root / "scripts")
    program = root / ".run" / "bin" / "protokube"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho ours\n")
    program.chmod(0o755)
    return root


@pytest.fixture
def links(tmp_path: Path) -> Path:
    folder = tmp_path / "links"
    folder.mkdir()
    return folder


def script(checkout: Path, name: str, links: Path, *arguments: str, path: str | None = None) -> tuple[int, str]:
    """Its exit code and what it said; nothing of it is a result."""
    search = f"{links}:/usr/bin:/bin" if path is None else path
    ran = subprocess.run(
        [checkout / "scripts" / name, *arguments], capture_output=True, text=True, timeout=60,
        env={"PATH": search, "PROTOKUBE_LINKS": str(links)},
    )  # fmt: skip
    assert ran.stdout == ""
    return ran.returncode, ran.stderr


def seen(link: Path) -> str:
    if link.is_symlink():
        return f"link to {link.readlink()}"
    return link.read_text() if link.is_file() else "folder"


class TestLink:
    def test_the_command_is_on_the_path_and_it_is_said(self, checkout: Path, links: Path) -> None:
        link, program = links / "protokube", checkout / ".run" / "bin" / "protokube"

        assert script(checkout, "link", links) == (0, f"setup: {link} is a link to {program}\n")

        assert subprocess.run([link], capture_output=True, text=True, check=True).stdout == "ours\n"

    def test_a_second_time_nothing_changes_and_nothing_is_said(self, checkout: Path, links: Path) -> None:
        script(checkout, "link", links)
        before = (links / "protokube").lstat().st_ino

        assert script(checkout, "link", links) == (0, "")
        assert (links / "protokube").lstat().st_ino == before

    @pytest.mark.parametrize("kind", ["file", "folder", "other checkout", "dangling", "loop"])
    def test_what_is_not_ours_stays_and_the_command_is_told_by_its_path(
        self, checkout: Path, links: Path, kind: str
    ) -> None:
        link = links / "protokube"
        match kind:
            case "file":
                link.write_text("somebody's")
            case "folder":
                link.mkdir()
            case "loop":
                link.symlink_to(link)
            case "dangling":
                link.symlink_to("/nowhere/.run/bin/protokube")
            case _:
                link.symlink_to(shutil.copytree(checkout, checkout.with_name("other")) / ".run/bin/protokube")
        before = seen(link)

        code, said = script(checkout, "link", links)

        assert (code, seen(link)) == (0, before)
        assert (
            said == f"setup: {link} is not of this checkout, and stays; the command is {checkout}/.run/bin/protokube\n"
        )
        assert script(checkout, "link", links, "--remove") == (0, "")
        assert seen(link) == before

    def test_it_is_taken_away_again(self, checkout: Path, links: Path) -> None:
        script(checkout, "link", links)

        assert script(checkout, "link", links, "--remove") == (0, f"setup: removed {links}/protokube\n")
        assert list(links.iterdir()) == []
        assert script(checkout, "link", links, "--remove") == (0, "")

    def test_a_folder_that_is_not_on_the_path_is_told(self, checkout: Path, links: Path) -> None:
        _, said = script(checkout, "link", links, path="/usr/bin:/bin")

        program = f"{checkout}/.run/bin/protokube"
        assert said.splitlines()[-1] == f"setup: {links} is not on your PATH; the command is {program}"

    def test_another_protokube_that_comes_first_is_told(self, checkout: Path, links: Path, tmp_path: Path) -> None:
        first = tmp_path / "first"
        first.mkdir()
        shutil.copy(checkout / ".run" / "bin" / "protokube", first)

        _, said = script(checkout, "link", links, path=f"{first}:{links}:/usr/bin:/bin")

        assert said.splitlines()[-1].startswith(
            f"setup: `protokube` on your PATH is {first}/protokube; the command is "
        )

    def test_without_the_folder_up_goes_on(self, checkout: Path, links: Path) -> None:
        links.rmdir()

        code, said = script(checkout, "link", links)

        assert (code, said) == (
            0, f"setup: no link could be made in {links}; the command is {checkout}/.run/bin/protokube\n",
        )  # fmt: skip


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH without sudo, for a user who is not root; what make runs only tells its name."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("make", "bash", "nproc", "echo"):
        (folder / name).symlink_to(shutil.which(name) or name)
    (folder / "id").write_text("#!/bin/bash\necho 1000\n")
    (folder / "id").chmod(0o755)
    return folder


def make(checkout: Path, programs: Path, target: str, code: int = 9) -> subprocess.CompletedProcess[str]:
    shutil.copy(SCRIPTS.parent / "Makefile", checkout)
    (checkout / "scripts" / "setup").write_text(f"#!/bin/bash\necho setup\nexit {code}\n")
    (checkout / "scripts" / "setup").chmod(0o755)
    env = {"PATH": str(programs)}
    return subprocess.run(["make", target], cwd=checkout, capture_output=True, text=True, timeout=60, env=env)


class TestWithoutSudo:
    @pytest.mark.parametrize("target", ["up", "down"])
    def test_a_user_who_cannot_become_root_is_told_so_before_anything_is_installed(
        self, checkout: Path, programs: Path, target: str
    ) -> None:
        ran = make(checkout, programs, target)

        assert ran.returncode == 2
        assert ran.stdout == ""
        assert ran.stderr.splitlines()[0] == (
            "error: hosts, disks and mounts need root, and this machine has no sudo: run make as root"
        )

    def test_with_sudo_it_goes_on(self, checkout: Path, programs: Path) -> None:
        (programs / "sudo").symlink_to("/bin/true")

        assert make(checkout, programs, "up").stdout == "setup\n"


def test_make_up_notes_the_cluster_also_if_up_fails_and_fails_like_it(checkout: Path, programs: Path) -> None:
    (programs / "id").write_text("#!/bin/bash\necho 0\n")
    for name, text in {
        "scripts/packages": "", "scripts/link": "", ".run/bin/python": "echo $*", ".run/bin/protokube": "exit 3"
    }.items():  # fmt: skip
        (checkout / name).write_text(f"#!/bin/bash\n{text}\n")
        (checkout / name).chmod(0o755)

    ran = make(checkout, programs, "up", code=0)

    assert ran.stdout.splitlines() == ["setup", "scripts/made.py note", "scripts/made.py keep"]
    assert "Error 3" in ran.stderr


PYTHON = """#!/bin/bash
echo "$*" >> python-was-called
case "$*" in
*sysconfig*) echo "$PWD/.run/lib" ;;
*" --target "*) mkdir -p "${@: -1}" ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
esac
"""
"""Does nothing but to be there, and to make environments that have itself."""


class TestSetUp:
    @pytest.fixture
    def calls(self, checkout: Path, tmp_path: Path) -> Callable[[], list[str]]:
        """Set up the small environment, and return how Python was called."""
        shutil.rmtree(checkout / ".run")
        shutil.copy(SCRIPTS / "setup", checkout / "scripts")
        shutil.copytree(SCRIPTS.parent / "requirements", checkout / "requirements")
        (checkout / "pyproject.toml").write_text("")
        python = tmp_path / "python3"
        python.write_text(PYTHON)
        python.chmod(0o755)

        def set_up() -> list[str]:
            log = checkout / "python-was-called"
            log.unlink(missing_ok=True)
            env = {**os.environ, "PYTHON": str(python)}
            subprocess.run(["scripts/setup", "run"], cwd=checkout, check=True, capture_output=True, timeout=60, env=env)
            return log.read_text().splitlines()

        return set_up

    def test_an_environment_is_made_once(self, calls: Callable[[], list[str]]) -> None:
        assert "-m venv .run" in calls()
        assert calls() == ["-c import pip", "-m compileall -q src"]

    def test_one_that_another_python_would_find_empty_is_made_anew(
        self, checkout: Path, calls: Callable[[], list[str]]
    ) -> None:
        calls()
        (checkout / ".run/bin/python").write_text("#!/bin/sh\nexit 1\n")

        assert "-m venv .run" in calls()


@contextmanager
def running_from(environment: Path) -> Iterator[int]:
    """A process whose program is in the environment, as the processes of a cluster are."""
    python = environment / "bin" / "python"
    python.symlink_to(sys.executable)
    with subprocess.Popen([python, "-c", "input()"], stdin=subprocess.PIPE) as process:
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(bytes(python)):
            time.sleep(0.01)
        yield process.pid
        process.kill()


class TestClean:
    def test_what_was_made_goes_with_the_link(self, checkout: Path, links: Path) -> None:
        script(checkout, "link", links)
        (checkout / "dist").mkdir()

        assert script(checkout, "clean", links) == (0, f"setup: removed {links}/protokube\n")

        assert [path.name for path in checkout.iterdir()] == ["scripts"]
        assert list(links.iterdir()) == []

    def test_a_users_configuration_stays(self, checkout: Path, links: Path) -> None:
        for name in (".coverage", ".coverage.host.1", ".coveragerc"):
            (checkout / name).write_text("")

        script(checkout, "clean", links)

        assert sorted(path.name for path in checkout.iterdir()) == [".coveragerc", "scripts"]

    def test_while_something_runs_from_it_nothing_goes(self, checkout: Path, links: Path) -> None:
        script(checkout, "link", links)

        with running_from(checkout / ".run") as pid:
            code, said = script(checkout, "clean", links)

        assert code == 4
        assert said.splitlines()[:2] == [
            "error: something runs from .run, which would lose its programs",
            f"  saw:  the processes {pid}",
        ]
        assert (checkout / ".run" / "bin" / "protokube").exists()
        assert (links / "protokube").exists()

    def test_a_process_that_only_names_the_environment_does_not_run_from_it(self, checkout: Path) -> None:
        with subprocess.Popen(["sleep", "60"], executable="/bin/sleep") as process:
            program = [checkout / "scripts" / "in_use", checkout / ".run"]
            ran = subprocess.run(program, capture_output=True, text=True)
            process.kill()

        assert (ran.returncode, ran.stdout) == (1, "")


def doing(*command: str) -> list[str]:
    return ["bash", "-euc", f'. {SCRIPTS}/progress.sh; doing "long work" "$@"', "-", *command]


class TestProgress:
    def test_in_a_pipe_something_is_printed_each_second(self) -> None:
        with subprocess.Popen(doing("sleep", "3"), stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            heard, times = b"", [time.monotonic()]
            while data := os.read(process.stderr.fileno(), 100):
                heard += data
                times.append(time.monotonic())

        assert heard.startswith(b"setup: long work ..")
        assert heard.endswith(b" s\n")
        assert len(times) > 4

    def test_on_a_terminal_the_last_line_is_shown(self) -> None:
        leader, follower = pty.openpty()
        with subprocess.Popen(doing("sh", "-c", "echo Fetching something; sleep 2"), stderr=follower) as process:
            os.close(follower)
            heard = b""
            while b"Fetching something" not in heard:
                heard += os.read(leader, 1000)
            process.wait()
        os.close(leader)

        assert b"\rsetup: long work" in heard.replace(b"\x1b[K", b"")

    def test_what_fails_is_shown_with_its_exit_code(self) -> None:
        ran = subprocess.run(doing("sh", "-c", "echo no such package; exit 7"), capture_output=True, text=True)

        assert ran.returncode == 7
        assert ran.stderr.splitlines()[1:] == [
            "error: this failed, with exit code 7: long work",
            "  saw:  no such package",
        ]

    def test_nothing_of_it_is_left_when_it_ends(self, tmp_path: Path) -> None:
        subprocess.run(doing("true"), check=True, capture_output=True, env={**os.environ, "TMPDIR": str(tmp_path)})

        assert list(tmp_path.iterdir()) == []
