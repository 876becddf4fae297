"""Before other programs serve etcd's data: a snapshot in the store, and a rehearsal on a copy restored from it.

The rehearsal starts the old program first, which proves that the snapshot is a way back, and then the new one, which
proves that it reads this data. Only then may the members of the cluster be restarted. Both start as a single member
with etcd's own defaults: the settings and certificates of the cluster are not rehearsed.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd.client import GatewayEtcd
from protokube.local import rehearsal
from protokube.local.base import client_files, ourselves, programs
from protokube.local.base.paths import Paths
from protokube.store import Store, layout

SECONDS = 600.0
"""For each step: several gigabytes at a few megabytes a second."""
SURVEY = 2.0
LENGTH = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One that was taken, restored and started."""

    path: str
    """In the store."""
    size: int
    revision: int
    versions: tuple[str, ...]
    """Of the programs that came up with it, in this order."""


def protect(
    store: Store, paths: Paths, key: str, *, urls: Mapping[str, str], images: Sequence[str], etcdctl: Path
) -> Snapshot:
    """Take, rehearse and store a snapshot of one etcd cluster; `images` are those of its programs, in their order.

    Refused if any step fails: nothing was changed then.
    """
    least = _revision(paths, urls)
    with tempfile.TemporaryDirectory(prefix=".snapshot-", dir=paths.root) as folder:
        file, data = Path(folder, "snapshot.db"), Path(folder, "data")
        _take(paths, urls, etcdctl, file)
        _call("restore", [*_restorer(paths, images), str(file), f"--data-dir={data}"])
        answers = _rehearse(data, [_program(paths, image, "etcd") for image in images])
        revision = min(each["revision"] for each in answers)
        if revision < least:
            raise Refused(
                f"the snapshot of etcd {key} is incomplete",
                saw=f"revision {revision} in it, {least} in the cluster before it was taken",
                hint="run it again; if it stays so, look at the disks of the members",
            )
        at = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
        path = layout.etcd_snapshot(paths.cluster, key, f"{at}-{answers[0]['version']}")
        store.create(path, file.read_bytes())
        versions = tuple(str(each["version"]) for each in answers)
        return Snapshot(path=path, size=file.stat().st_size, revision=revision, versions=versions)


def _revision(paths: Paths, urls: Mapping[str, str]) -> int:
    """What the snapshot must have at least."""
    client = GatewayEtcd(urls, client_files.etcd_tls(paths))
    try:
        return max((each.revision for each in client.survey(SURVEY).values()), default=0)
    finally:
        client.close()


def _take(paths: Paths, urls: Mapping[str, str], etcdctl: Path, file: Path) -> None:
    """From the first member that gives one; etcdctl checks that it arrived whole."""
    failures = []
    for name, url in urls.items():
        variables = {**client_files.environment(paths, urls), "ETCDCTL_ENDPOINTS": url, "ETCDCTL_API": "3"}
        try:
            _call(f"snapshot of {name}", [str(etcdctl), "snapshot", "save", str(file)], variables)
        except ProtokubeError as why:
            failures.append(f"{name}: {why.saw or why.message}")
        else:
            return
    raise TryLater("no member of etcd gives a snapshot", saw="; ".join(failures), hint="protokube status")


def _restorer(paths: Paths, images: Sequence[str]) -> list[str]:
    """The tool of the first program whose tool can restore. etcdctl can until 3.5."""
    for image in images:
        for tool in ("etcdutl", "etcdctl"):
            found = programs.find(paths.programs, image, tool)
            if found and not _fails([str(found), "snapshot", "restore", "--help"]):
                return [str(found), "snapshot", "restore"]
    raise Refused("no program here restores a snapshot of etcd", want="etcdutl", hint="`protokube get etcd` brings it")


def _program(paths: Paths, image: str, name: str) -> Path:
    found = programs.find(paths.programs, image, name)
    if found is None:
        raise Refused(f"there is no {name} of {image} on this machine", hint="run `up` again")
    return found


def _rehearse(data: Path, starts: list[Path]) -> list[dict[str, int]]:
    module = ourselves.command(rehearsal.__name__)
    answers: list[dict[str, int]] = json.loads(_call("rehearsal", [*module, str(data), *map(str, starts)]))
    return answers


def _fails(command: list[str]) -> bool:
    try:
        _call("", command)
    except ProtokubeError:
        return True
    return False


def _call(what: str, command: list[str], variables: Mapping[str, str] | None = None) -> str:
    environment = {**os.environ, "ETCDCTL_API": "3", **(variables or {})}
    try:
        ran = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Refused(f"{what}: {why}") from why
    if ran.returncode:
        raise Refused(f"{what} failed, and nothing was changed", saw=(ran.stderr or ran.stdout).strip()[-LENGTH:])
    return ran.stdout
