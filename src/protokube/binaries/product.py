"""Programs of others that come in versions, Kubernetes and etcd: find them in a folder the user names, or our cache.

A version in the cache is a folder of its own that was given its name when all of it was there; whatever else lies in
the cache is work in progress, and is not looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import InvalidRequest, Refused

CACHE = Path("/var/cache/protokube")
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
    """What is got, kept and found by version."""

    name: str
    """As people call it."""
    key: str
    """As our commands, folders and files call it."""
    programs: tuple[str, ...]
    """All of them; the first one is asked for the version."""
    needed: tuple[str, ...]
    """Without which a folder that the user names cannot be used."""
    chosen: str
    """The variable by which a user names a folder."""
    example: str
    """A version, for hints."""
    ask_version: Mapping[str, tuple[str, ...]]
    """Arguments that make a program say its version, where they are not `--version`."""
    answer: re.Pattern[str]
    """What it prints then; the group is the version."""
    why_not: Callable[[str], str] = lambda _: ""
    """Why a version is not to be used, if so."""

    def find(self, version: str | None, cache: Path = CACHE) -> Release | None:
        """This version, or the newest there is; the user's own choice must be what is asked for."""
        asked = None if version is None else self.plain_version(version)
        if folder := os.environ.get(self.chosen):
            return self._chosen(Path(folder), asked)
        names = self.complete_versions(cache) if asked is None else [asked]
        return next((found for name in names if (found := self.in_cache(name, cache))), None)

    def complete_versions(self, cache: Path = CACHE) -> list[str]:
        """What the cache holds, newest first."""
        kept = self.shelf(cache)
        names = [each.name for each in kept.iterdir() if VERSION.match(each.name)] if kept.is_dir() else []
        return newest_first(name for name in names if (kept / name / COMPLETE).exists())

    def shelf(self, cache: Path) -> Path:
        """The folder of all its versions."""
        return cache / self.key

    def in_folder(self, folder: Path) -> dict[str, Path]:
        """Its programs that lie in a folder."""
        return {name: folder / name for name in self.programs if os.access(folder / name, os.X_OK)}

    def in_cache(self, version: str, cache: Path) -> Release | None:
        """This version, if the cache holds all of it."""
        folder = self.shelf(cache) / version
        programs = self.in_folder(folder)
        if not (folder / COMPLETE).exists() or len(programs) < len(self.programs):
            return None
        return Release(version=version, folder=folder, programs=programs)

    def plain_version(self, text: str) -> str:
        """`v1.34.1` is `1.34.1`; anything that is no version is the user's mistake."""
        if not VERSION.match(text):
            series = re.match(r"v?(\d+\.\d+)\.?$", text)
            raise InvalidRequest(
                f"{text!r} is not a version of {self.name}",
                want=f"all three numbers, such as {self.example}",
                hint=f"a release of {series[1]} is meant? name it: {series[1]}.0, {series[1]}.1, …" if series else "",
            )
        return text.removeprefix("v")

    def version(self, path: Path) -> str:
        """What a program says it is: `1.34.1`."""
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

    def _chosen(self, folder: Path, asked: str | None) -> Release:
        """Programs beside the needed ones may be missing: the user knows."""
        programs = self.in_folder(folder)
        if missing := [name for name in self.needed if name not in programs]:
            raise Refused(
                f"there is no {', no '.join(missing)} in {folder}",
                want="programs that may be executed",
                hint=f"correct {self.chosen}, or unset it",
            )
        found = self.version(programs[self.needed[0]])
        if asked not in (None, found):
            raise Refused(
                f"{folder} holds {self.name} {found}",
                want=f"{asked}, which was asked for",
                hint=f"correct {self.chosen}, or unset it",
            )
        return Release(version=found, folder=folder, programs=programs)


def newest_first(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=_age, reverse=True)


def _age(version: str) -> tuple[int, int, int, bool, str, int]:
    """What orders versions; 1.35.0-rc.1 comes before 1.35.0."""
    found = VERSION.match(version)
    assert found, version
    stage, _, number = (found[4] or "").partition(".")
    return int(found[1]), int(found[2]), int(found[3]), not found[4], stage, int(number or 0)
