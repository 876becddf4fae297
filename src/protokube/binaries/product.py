"""Third-party binaries in versions (Kubernetes, etcd, CoreDNS): find them in a folder the user names, or in our cache.

Each version in the cache is a folder that gets its final name by a rename once it is complete. Other folders in the
cache are work in progress and are ignored.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import InvalidRequest, Refused

CACHE = Path(os.environ.get("PROTOKUBE_CACHE") or "/var/cache/protokube").absolute()
"""Downloaded binaries and what is built from them, shared by all clusters; the environment names another folder."""
COMPLETE = ".complete"
VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})(-[a-z]+\.\d{1,4})?\Z")
NUMBERS = r"(\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?)"
"""A version, for the patterns of products."""
SECONDS_TO_SAY_VERSION = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The programs of one version, in one folder."""

    version: str
    folder: Path
    programs: Mapping[str, Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A set of binaries that is downloaded, cached and found by version."""

    name: str
    """For messages."""
    key: str
    """For our commands, folders and files."""
    programs: tuple[str, ...]
    """All binaries; the first one is run to get the version."""
    needed: tuple[str, ...]
    """Binaries that a folder which the user names must have."""
    chosen: str
    """The environment variable by which a user names a folder."""
    example: str
    """A version, for hints."""
    ask_version: Mapping[str, tuple[str, ...]]
    """By program: the arguments that print its version, where they are not `--version`."""
    answer: re.Pattern[str]
    """Matches the printed version; the first group is the version."""
    why_not: Callable[[str], str] = lambda _: ""
    """Why a version must not be used; empty if it may be."""

    def find(self, version: str | None, cache: Path = CACHE) -> Release | None:
        """This version, or the newest one on this machine. Refused if the user's own folder has another version."""
        requested = None if version is None else self.plain_version(version)
        if folder := os.environ.get(self.chosen):
            return self._chosen(Path(folder), requested)
        names = self.complete_versions(cache) if requested is None else [requested]
        return next((found for name in names if (found := self.in_cache(name, cache))), None)

    def complete_versions(self, cache: Path = CACHE) -> list[str]:
        """The versions in the cache, newest first."""
        kept = self.versions_folder(cache)
        names = [each.name for each in kept.iterdir() if VERSION.match(each.name)] if kept.is_dir() else []
        return newest_first(name for name in names if (kept / name / COMPLETE).exists())

    def versions_folder(self, cache: Path) -> Path:
        """The cache folder that has one folder per version."""
        return cache / self.key

    def in_folder(self, folder: Path) -> dict[str, Path]:
        """Its executables in a folder, by name."""
        return {name: folder / name for name in self.programs if os.access(folder / name, os.X_OK)}

    def in_cache(self, version: str, cache: Path) -> Release | None:
        """This version, if the cache has it completely."""
        folder = self.versions_folder(cache) / version
        programs = self.in_folder(folder)
        if not (folder / COMPLETE).exists() or len(programs) < len(self.programs):
            return None
        return Release(version=version, folder=folder, programs=programs)

    def plain_version(self, text: str) -> str:
        """`1.34.1` for `v1.34.1`; InvalidRequest for what is not a version."""
        if not VERSION.match(text):
            series = re.match(r"v?(\d+\.\d+)\.?$", text)
            raise InvalidRequest(
                f"{text!r} is not a version of {self.name}",
                want=f"all three numbers, such as {self.example}",
                hint=f"a release of {series[1]} is meant? name it: {series[1]}.0, {series[1]}.1, …" if series else "",
            )
        return text.removeprefix("v")

    def version(self, path: Path) -> str:
        """Run a program to get its version: `1.34.1`."""
        command = [str(path), *self.ask_version.get(path.name, ("--version",))]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ETCD")}
        try:
            ran = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, errors="replace", timeout=SECONDS_TO_SAY_VERSION,
                env={**kept, "ETCDCTL_API": "3"},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as why:
            raise Refused(f"{path} does not run", saw=str(why), hint="was it made for this kind of machine?") from why
        found = self.answer.search(ran.stdout)
        if ran.returncode or not found:
            raise Refused(f"{path} does not say its version", saw=(ran.stderr or ran.stdout).strip()[:200])
        return found[1]

    def _chosen(self, folder: Path, requested: str | None) -> Release:
        """The folder that the user names; only the needed programs must be there."""
        programs = self.in_folder(folder)
        if missing := [name for name in self.needed if name not in programs]:
            raise Refused(
                f"there is no {', no '.join(missing)} in {folder}",
                want="programs that may be executed",
                hint=f"correct {self.chosen}, or unset it",
            )
        found = self.version(programs[self.needed[0]])
        if requested not in (None, found):
            raise Refused(
                f"{folder} holds {self.name} {found}",
                want=f"{requested}, which was asked for",
                hint=f"correct {self.chosen}, or unset it",
            )
        return Release(version=found, folder=folder, programs=programs)


def newest_first(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=_age, reverse=True)


def _age(version: str) -> tuple[int, int, int, bool, str, int]:
    """Sort key of a version; 1.35.0-rc.1 comes before 1.35.0."""
    found = VERSION.match(version)
    assert found, version
    stage, _, number = (found[4] or "").partition(".")
    return int(found[1]), int(found[2]), int(found[3]), not found[4], stage, int(number or 0)
