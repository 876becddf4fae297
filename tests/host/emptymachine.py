"""A machine with Debian's Python and nothing of ours: no site-packages, no network, a read-only root.

Docker is not needed for that. apt works out what `python3` and `coreutils` (for `env`) need on a machine that
has nothing, dpkg-deb unpacks it under .cache, and the kernel's namespaces do the rest.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("python3", "coreutils")
PYZ = "/opt/protokube.pyz"
SMALL = ("wheels/click-", "wheels/pyyaml-")
WRITABLE = ("root", "home", "tmp", "var/cache")

# Mounts live in a namespace of their own and go away with the command.
ENTER = """
root=$1 state=$2 pyz=$3 user=$4; shift 4
mount -o bind,ro "$root" "$root"
for place in $WRITABLE; do mount --bind "$state/$place" "$root/$place"; done
mount -o bind,ro "$pyz" "$root$PYZ"
exec chroot --userspec="$user:$user" "$root" /usr/bin/env --ignore-environment --chdir=/ "$@"
"""


@dataclass(frozen=True)
class EmptyMachine:
    """One such machine: the root is shared and read-only, what it writes lies in `state`."""

    root: Path
    state: Path
    pyz: Path

    @classmethod
    def boot(cls, root: Path, state: Path, pyz: Path) -> EmptyMachine:
        for place in WRITABLE:
            (state / place).mkdir(parents=True)
        (state / "tmp").chmod(0o1777)
        return cls(root, state, pyz)

    def run(self, *command: str, user: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with exactly this environment besides PATH."""
        with self.start(*command, user=user, **environ) as running:
            out, err = running.communicate(timeout=60)
        return subprocess.CompletedProcess(command, running.returncode, out, err)

    def start(self, *command: str, user: int = 0, **environ: str) -> subprocess.Popen[str]:
        environ = {"PATH": "/usr/bin:/bin", **environ}
        namespaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
        machine = [str(self.root), str(self.state), str(self.pyz), str(user)]
        return subprocess.Popen(
            [*namespaces, "sh", "-ec", ENTER, "sh", *machine, *(f"{k}={v}" for k, v in environ.items()), *command],
            env={"PATH": os.environ["PATH"], "WRITABLE": " ".join(WRITABLE), "PYZ": PYZ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def seen_from_outside(self, path: str) -> Path:
        """Where a writable path of the machine lies on ours."""
        return self.state / path.lstrip("/")


def with_small_payload(pyz: Path, output: Path) -> Path:
    """A copy of the single-file build with few wheels, in which protokube is one module that prints its version."""
    small = io.BytesIO()
    with ZipFile(small, "w") as wheel:
        wheel.writestr("protokube/__init__.py", "")
        wheel.writestr("protokube/cli/__init__.py", "")
        wheel.writestr("protokube/cli/main.py", "def main():\n    print('protokube, version 0')\n")
    with ZipFile(pyz) as whole, output.open("wb") as file:
        file.write(pyz.read_bytes().partition(b"\n")[0] + b"\n")
        with ZipFile(file, "w") as copy:
            for entry in whole.infolist():
                ours = entry.filename.startswith("wheels/protokube-")
                if entry.filename.startswith("wheels/") and not ours and not entry.filename.startswith(SMALL):
                    continue
                content = small.getvalue() if ours else whole.read(entry)
                # Its digest names the folder it is unpacked to, and its content is another one.
                content = content.replace(b'"', b'"5a11', 1) if entry.filename == "contents.py" else content
                copy.writestr(entry, content)
    output.chmod(0o755)
    return output


def debian_root(cache: Path) -> Path:
    """The root file system, made on first use and kept in `cache`."""
    if os.geteuid() != 0:
        pytest.fail("this test enters a container of its own and has to run as root")
    if missing := [tool for tool in ("apt-get", "dpkg-deb", "unshare", "chroot") if not shutil.which(tool)]:
        pytest.fail(
            f"this test makes a container from Debian's packages and needs {', '.join(missing)}: run it on Debian"
        )
    root = cache / "root"
    if not root.exists():
        shutil.rmtree(cache, ignore_errors=True)
        half_made = cache / "root.new"
        unpack(download(cache / "packages"), half_made)
        compile_everything(half_made)
        half_made.rename(root)
        shutil.rmtree(cache / "packages")
    return root


def download(folder: Path) -> list[Path]:
    """PACKAGES and all they need, as apt would fetch them for a machine with nothing installed."""
    (folder / "partial").mkdir(parents=True)
    options = ["Dir::State::status=/dev/null", f"Dir::Cache::archives={folder}", "APT::Sandbox::User=root"]
    options += ["APT::Install-Recommends=false", "Debug::NoLocking=true"]
    command = ["apt-get", "-qq", "--yes", "--download-only", *(f"--option={option}" for option in options)]
    command += ["install", *PACKAGES]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:  # a fresh machine has no package lists, an old one has lists of packages that are gone
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True, check=False)
        ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        pytest.fail(f"apt-get could not download {' and '.join(PACKAGES)}: {ran.stderr.strip()}")
    return sorted(folder.glob("*.deb"))


def unpack(packages: list[Path], root: Path) -> None:
    """Unpack without installing: no package's script runs, here or there."""
    for merged in ("bin", "sbin", "lib", "lib64"):  # what Debian's base-files would bring
        (root / "usr" / merged).mkdir(parents=True)
        (root / merged).symlink_to(f"usr/{merged}")
    for package in packages:
        archive = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", root], stdin=archive.stdout, check=True)
        assert archive.stdout is not None
        archive.stdout.close()
        assert archive.wait() == 0, f"{package} is damaged"
    for place in WRITABLE:
        (root / place).mkdir(parents=True, exist_ok=True)
    (root / PYZ.lstrip("/")).parent.mkdir(exist_ok=True)
    (root / PYZ.lstrip("/")).touch()


def compile_everything(root: Path) -> None:
    """What installing Debian's Python would do: without bytecode every start would compile the standard library."""
    (library,) = (root / "usr" / "lib").glob("python3.*")
    command = ["chroot", str(root), "/usr/bin/python3", "-m", "compileall", "-q", f"/usr/lib/{library.name}"]
    subprocess.run(command, capture_output=True, check=True)
