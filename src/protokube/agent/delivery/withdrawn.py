"""Remove what the former revision wrote and the present one does not have: components, and files of the user.

Only the former revision, kept on this machine's own disk, proves that something is ours. A file that was changed by
hand since stays, and is reported.
"""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

from protokube.agent import links
from protokube.agent.delivery import present
from protokube.agent.round import Round
from protokube.host.files import read_or_none, remove
from protokube.launch.machine import FileText, MasterConfig

STEP = "components"


def sync(round_: Round) -> None:
    former = present.read(round_.edges.inside(present.FORMER))
    if former is None or former.number == round_.wanted.revision:
        return
    group = round_.edges.me.group
    before, now = former.master.files_of(group), round_.wanted.files_of(group)
    for name in components(former.master, round_.wanted):
        path = f"{links.DIRECTORY}/{name}.manifest"
        if path not in now and remove(round_.edges.inside(path)):
            round_.report.done(STEP, "manifest removed: the configuration has it no more", name)
    for path in sorted(before.keys() - now.keys() - written_paths(round_.wanted)):
        _remove(round_, path, before[path])


def components(before: MasterConfig, after: MasterConfig) -> list[str]:
    return sorted({each.name for each in before.components} - {each.name for each in after.components})


def written_paths(wanted: MasterConfig) -> set[str]:
    """What we write at fixed places, which a user's file may have had before."""
    files = {path for each in wanted.components for path in each.files}
    return files | wanted.kubeconfigs.keys() | wanted.secret_files.keys()


def _remove(round_: Round, path: str, former: FileText) -> None:
    place: Path = round_.edges.inside(path)
    if (found := read_or_none(place)) is None:
        return
    if found != b64decode(former.text):
        round_.report.warn(STEP, "the configuration has it no more, but it was changed by hand, so it stays", path)
        return
    if remove(place):
        round_.report.done(STEP, f"{path} removed: the configuration has it no more")
