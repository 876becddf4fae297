"""Build programs from published Go modules: any version, with no network but a module proxy.

Every module is compared with a sum before it is compiled. For versions that we test the sums lie beside this file; for
others Go asks its checksum database, and where that is not served nothing is built unless the user says so.
Go's own caches are used, so a second build of a neighbouring version takes a fraction of the time.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protokube.binaries import gosource, shelf
from protokube.binaries.gotools import Go, find_go, go_environment
from protokube.binaries.product import Release
from protokube.binaries.running import Runner
from protokube.binaries.sources import Source
from protokube.binaries.telling import Teller
from protokube.errors import InvalidRequest, Refused, TryLater

SUMS = Path(__file__).with_name("sums")
OLDEST_GO = "1.21"
"""What reads the go.mod of a release, before it is known which Go that one needs."""
ROOM = 6_000_000_000
FOLDER = ".modules"
SECONDS = 300.0
MOST = 5
"""Modules that an error names."""
NOTHING = '{{with ""}}{{end}}'
"""What `go list` prints of each package: packages have to be loaded, and what it says then are complaints alone."""


def build_from_modules(
    source: Source,
    version: str,
    cache: Path,
    teller: Teller,
    *,
    unverified: bool = False,
    room: int = ROOM,
    sums: Path = SUMS,
) -> Release:
    """This version in the cache."""
    product = source.product
    with shelf.only_one(product, cache, teller) as kept:
        if found := product.find(version, cache):
            return found
        with shelf.building(kept, FOLDER, room) as folder:
            pinned = pinned_sums(source, version, sums)
            wrapper = _resolved(source, version, folder, teller, pinned=pinned, unverified=unverified)
            draft = shelf.draft(kept, version)
            for name, package in source.packages.items():
                with teller.step(f"{name} {version} is built"):
                    wrapper.build(package, draft / name, test=name in source.tests)
            return shelf.finish(product, draft, kept, version)


def resolved_sums(source: Source, version: str, cache: Path, teller: Teller, *, unverified: bool = False) -> str:
    """The sums of all modules that this version consists of, as the checksum database has them."""
    with shelf.only_one(source.product, cache, teller) as kept, shelf.building(kept, FOLDER, 0) as folder:
        wrapper = _resolved(source, version, folder, teller, pinned="", unverified=unverified)
        return (wrapper.folder / "go.sum").read_text("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A main module that is complete: every module that it needs was downloaded and compared with its sum."""

    folder: Path
    go: Go
    environment: Mapping[str, str]
    stamp: str
    run: Runner

    def build(self, package: str, target: Path, *, test: bool = False) -> None:
        # what `go vet` finds in tests of others is not ours to mend, and it looks for a quarter of an hour
        how = ["test", "-c", "-vet=off"] if test else ["build"]
        compiler = ["nice", "-n", "5", str(self.go.path), *how, "-mod=readonly", f"-ldflags={self.stamp}"]
        self.run([*compiler, "-o", str(target), package], self.folder, self.environment)


def _resolved(source: Source, version: str, folder: Path, teller: Teller, *, pinned: str, unverified: bool) -> Wrapper:
    kept, what = folder.parent, f"{source.product.name} {version}"
    run, asks_database = Runner(kept / "build.log", teller), not (pinned or unverified)
    go = find_go(OLDEST_GO, kept.parent, run)
    environment = go_environment(go, database=asks_database)
    with teller.step(f"go.mod of {what}"):
        release = _download(go, source, version, folder, environment)
        mod = gosource.read_go_mod(_json(go, folder, environment, "mod", "edit", "-json", release["GoMod"]))
    if not go.is_at_least(mod.go):
        go = find_go(mod.go, kept.parent, run)
        environment = go_environment(go, database=asks_database)
    (folder / "go.mod").write_text(gosource.wrapper(source.modules, version, mod, source.staging(version)), "ascii")
    with teller.step("modules that it consists of"):
        _resolve(source, what, folder, go, pinned, environment, run)
    commit = str((release.get("Origin") or {}).get("Hash", ""))
    stamp = source.linker_flags(version, commit)
    return Wrapper(folder=folder, go=go, environment=environment, stamp=stamp, run=run)


def pinned_sums(source: Source, version: str, sums: Path = SUMS) -> str:
    """The sums of a version that we test; "" for others."""
    file = sums / f"{source.product.key}-{version}.sum"
    return file.read_text("ascii") if file.exists() else ""


def _download(go: Go, source: Source, version: str, work: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """The release itself. Go answers in JSON, also if there is no such version."""
    told = _json(go, work, environment, "mod", "download", "-json", f"{source.modules[0]}@v{version}")
    if error := str(told.get("Error", "")):
        raise _refusal(f"{source.product.name} {version}", error)
    return told


def _refusal(what: str, error: str) -> Refused | InvalidRequest | TryLater:
    """What to do about an answer of Go's."""
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
    """Complete the wrapper: every module that is compiled, with its sum."""
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
        output = run.log.read_text("utf-8", errors="replace")  # all of it: an error has its last lines alone
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
        told = json.loads(ran.stdout or "null")
    except (OSError, ValueError, subprocess.TimeoutExpired) as why:
        raise TryLater(f"`{' '.join(command)}` failed", saw=str(why)) from why
    if not isinstance(told, dict):
        raise TryLater(f"`{' '.join(command)}` failed", saw=ran.stderr.strip()[-1000:])
    return told
