"""Find Kubernetes on this machine: the folder the user names, then our cache.

A version in the cache is a folder of its own that was given its name when all of it was there; whatever else lies in
the cache is work in progress, and is not looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import InvalidRequest, Refused

CHOSEN = "PROTOKUBE_KUBERNETES_BIN"
CACHE = Path("/var/cache/protokube")
COMPLETE = ".complete"
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROGRAMS = (*CONTROL_PLANE, "kubelet", "kube-proxy", "kubectl")
VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})(-[a-z]+\.\d{1,4})?\Z")
SECONDS_TO_SAY_VERSION = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubernetes:
    """The programs of one version, in one folder."""

    version: str
    folder: Path
    programs: Mapping[str, Path]


def find(version: str | None, cache: Path = CACHE) -> Kubernetes | None:
    """This version, or the newest there is; the user's own choice must be what is asked for."""
    asked = None if version is None else plain_version(version)
    if folder := os.environ.get(CHOSEN):
        return _chosen(Path(folder), asked)
    names = complete_versions(cache) if asked is None else [asked]
    return next((found for name in names if (found := in_cache(name, cache))), None)


def complete_versions(cache: Path) -> list[str]:
    """What the cache holds, newest first."""
    kept = shelf(cache)
    names = [each.name for each in kept.iterdir() if VERSION.match(each.name)] if kept.is_dir() else []
    return newest_first(name for name in names if (kept / name / COMPLETE).exists())


def shelf(cache: Path) -> Path:
    return cache / "kubernetes"


def in_folder(folder: Path) -> dict[str, Path]:
    """The programs of Kubernetes that lie in a folder."""
    return {name: folder / name for name in PROGRAMS if os.access(folder / name, os.X_OK)}


def plain_version(text: str) -> str:
    """`v1.34.1` is `1.34.1`; anything that is no version is the user's mistake."""
    if not VERSION.match(text):
        series = re.match(r"v?(\d+\.\d+)\.?$", text)
        raise InvalidRequest(
            f"{text!r} is not a version of Kubernetes",
            want="all three numbers, such as 1.34.1",
            hint=f"a release of {series[1]} is meant? name it: {series[1]}.0, {series[1]}.1, …" if series else "",
        )
    return text.removeprefix("v")


def newest_first(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=_age, reverse=True)


def _age(version: str) -> tuple[int, int, int, bool, str, int]:
    """What orders versions; 1.35.0-rc.1 comes before 1.35.0."""
    found = VERSION.match(version)
    assert found, version
    stage, _, number = (found[4] or "").partition(".")
    return int(found[1]), int(found[2]), int(found[3]), not found[4], stage, int(number or 0)


def version(path: Path) -> str:
    """What a program says it is: `1.34.1`."""
    command = [str(path), "version", "--client"] if path.name == "kubectl" else [str(path), "--version"]
    try:
        ran = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, errors="replace", timeout=SECONDS_TO_SAY_VERSION
        )
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Refused(f"{path} does not run", saw=str(why), hint="was it made for this kind of machine?") from why
    found = re.search(r"\bv(\d+\.\d+\.\d+(-[a-z]+\.\d+)?)", ran.stdout)
    if ran.returncode or not found:
        raise Refused(f"{path} does not say its version", saw=(ran.stderr or ran.stdout).strip()[:200])
    return found[1]


def in_cache(version: str, cache: Path) -> Kubernetes | None:
    """This version, if the cache holds all of it."""
    folder = shelf(cache) / version
    programs = in_folder(folder)
    if not (folder / COMPLETE).exists() or len(programs) < len(PROGRAMS):
        return None
    return Kubernetes(version=version, folder=folder, programs=programs)


def _chosen(folder: Path, asked: str | None) -> Kubernetes:
    """For a control plane alone the other programs may be missing: the user knows."""
    programs = in_folder(folder)
    if missing := [name for name in CONTROL_PLANE if name not in programs]:
        raise Refused(
            f"there is no {', no '.join(missing)} in {folder}",
            want="programs that may be executed",
            hint=f"correct {CHOSEN}, or unset it",
        )
    found = version(programs[CONTROL_PLANE[0]])
    if asked not in (None, found):
        raise Refused(
            f"{folder} holds Kubernetes {found}",
            want=f"{asked}, which was asked for",
            hint=f"correct {CHOSEN}, or unset it",
        )
    return Kubernetes(version=found, folder=folder, programs=programs)
