"""Build binaries of any version from published Go modules; needs no network but a module proxy.

Every module is verified against a checksum before it is compiled. For versions that we test, the checksums are in
`sums/`; for others Go queries its checksum database. Where that is not reachable, the build is refused unless the user
passes --unverified. Go's own caches are used, so a build of a similar version takes a fraction of the time.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protokube.binaries import cache_folder, gosource
from protokube.binaries.gotools import Go, find_go, go_environment
from protokube.binaries.product import Release
from protokube.binaries.progress import ProgressReporter
from protokube.binaries.running import Runner
from protokube.binaries.sources import Source
from protokube.errors import InvalidRequest, Refused, TryLater

SUMS = Path(__file__).with_name("sums")
OLDEST_GO = "1.21"
"""Enough to read the go.mod of a release, which names the Go version that the build needs."""
ROOM = 6_000_000_000
FOLDER = ".modules"
SECONDS = 300.0
MOST = 5
"""How many modules an error lists."""
NOTHING = '{{with ""}}{{end}}'
"""A `go list` template that prints nothing: the packages are loaded, and the output contains only errors."""


def build_from_modules(
    source: Source,
    version: str,
    cache: Path,
    progress: ProgressReporter,
    *,
    unverified: bool = False,
    room: int = ROOM,
    sums: Path = SUMS,
) -> Release:
    """Build this version into the cache; return the cached one if there is one."""
    product = source.product
    with cache_folder.locked(product, cache, progress) as kept:
        if found := product.find(version, cache):
            return found
        with cache_folder.building(kept, FOLDER, room) as folder:
            pinned = pinned_sums(source, version, sums)
            wrapper = _resolved(source, version, folder, progress, pinned=pinned, unverified=unverified)
            draft = cache_folder.draft(kept, version)
            for name, package in source.packages.items():
                with progress.step(f"{name} {version} is built"):
                    wrapper.build(package, draft / name, test=name in source.tests)
            return cache_folder.finish(product, draft, kept, version)


def resolved_sums(
    source: Source, version: str, cache: Path, progress: ProgressReporter, *, unverified: bool = False
) -> str:
    """The go.sum lines of all modules of this version, verified by the checksum database."""
    with cache_folder.locked(source.product, cache, progress) as kept, cache_folder.building(kept, FOLDER, 0) as folder:
        wrapper = _resolved(source, version, folder, progress, pinned="", unverified=unverified)
        return (wrapper.folder / "go.sum").read_text("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A resolved main module: every module that it needs is downloaded and verified."""

    folder: Path
    go: Go
    environment: Mapping[str, str]
    stamp: str
    run: Runner

    def build(self, package: str, target: Path, *, test: bool = False) -> None:
        # no `go vet`: it takes a quarter of an hour, and its findings in upstream tests are not ours to fix
        how = ["test", "-c", "-vet=off"] if test else ["build"]
        compiler = ["nice", "-n", "5", str(self.go.path), *how, "-mod=readonly", f"-ldflags={self.stamp}"]
        self.run([*compiler, "-o", str(target), package], self.folder, self.environment)


def _resolved(
    source: Source, version: str, folder: Path, progress: ProgressReporter, *, pinned: str, unverified: bool
) -> Wrapper:
    kept, what = folder.parent, f"{source.product.name} {version}"
    run, asks_database = Runner(kept / "build.log", progress), not (pinned or unverified)
    go = find_go(OLDEST_GO, kept.parent, run)
    environment = go_environment(go, database=asks_database)
    with progress.step(f"go.mod of {what}"):
        release = _download(go, source, version, folder, environment)
        mod = gosource.read_go_mod(_json(go, folder, environment, "mod", "edit", "-json", release["GoMod"]))
    if not go.is_at_least(mod.go):
        go = find_go(mod.go, kept.parent, run)
        environment = go_environment(go, database=asks_database)
    (folder / "go.mod").write_text(gosource.wrapper(source.modules, version, mod, source.staging(version)), "ascii")
    with progress.step("Go modules of the build"):
        _resolve(source, what, folder, go, pinned, environment, run)
    commit = str((release.get("Origin") or {}).get("Hash", ""))
    stamp = source.linker_flags(version, commit)
    return Wrapper(folder=folder, go=go, environment=environment, stamp=stamp, run=run)


def pinned_sums(source: Source, version: str, sums: Path = SUMS) -> str:
    """The go.sum lines of a version that we test; "" for others."""
    file = sums / f"{source.product.key}-{version}.sum"
    return file.read_text("ascii") if file.exists() else ""


def _download(go: Go, source: Source, version: str, work: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Download the release's main module. Go replies in JSON even if there is no such version."""
    reply = _json(go, work, environment, "mod", "download", "-json", f"{source.modules[0]}@v{version}")
    if error := str(reply.get("Error", "")):
        raise _refusal(f"{source.product.name} {version}", error)
    return reply


def _refusal(what: str, error: str) -> Refused | InvalidRequest | TryLater:
    """Turn an error of Go into one of ours, by who has to act."""
    if "verifying" in error:
        return Refused(
            f"the sums of {what} cannot be compared",
            saw=error,
            want="a checksum database that has them",
            hint="name another release, or build it all the same with --unverified",
        )
    if any(
        words in error
        for words in ("unknown revision", "not found", "404 Not Found", "no such file", "is not available")
    ):
        return InvalidRequest(f"there is no {what} at the module proxy", saw=error)
    return TryLater(f"{what} could not be downloaded", saw=error)


def _resolve(
    source: Source, what: str, work: Path, go: Go, pinned: str, environment: Mapping[str, str], run: Runner
) -> None:
    """Complete go.mod and go.sum of the wrapper with every module that is compiled."""
    packages = source.packages.values()
    (work / "packages.go").write_text(gosource.imports(packages), "ascii")
    (work / "go.sum").write_text(pinned, "ascii")
    listing = [str(go.path), "list", "-mod=mod", "-deps", "-f", NOTHING]
    tests = [source.packages[name] for name in sorted(source.tests)]
    try:
        run([*listing, *packages], work, environment)
        if tests:
            run([*listing, "-test", *tests], work, environment)
    except TryLater as why:
        output = run.log.read_text("utf-8", errors="replace")  # the full output; `why` has only its last lines
        if unverified := [line for line in output.splitlines() if "verifying" in line]:
            raise _refusal(what, why.saw if "verifying" in why.saw else unverified[0]) from why
        if missing := gosource.not_served(output):
            raise InvalidRequest(
                f"the module proxy does not serve all modules of {what}",
                saw=_few(missing),
                hint="name another patch release, or take the official release: without --build",
            ) from why
        raise
    if pinned and (unknown := gosource.unknown_sums(pinned, (work / "go.sum").read_text("ascii"))):
        raise Refused(
            f"{what} would be built with modules that are not in our sums",
            saw=_few(unknown),
            hint="report it; a proxy that answers otherwise than the public one may be the cause",
        )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def _json(go: Go, work: Path, environment: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    command = [str(go.path), *arguments]
    try:
        ran = subprocess.run(  # noqa: S603
            command, cwd=work, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
        reply = json.loads(ran.stdout or "null")
    except (OSError, ValueError, subprocess.TimeoutExpired) as why:
        raise TryLater(f"`{' '.join(command)}` failed", saw=str(why)) from why
    if not isinstance(reply, dict):
        raise TryLater(f"`{' '.join(command)}` failed", saw=ran.stderr.strip()[-1000:])
    return reply
