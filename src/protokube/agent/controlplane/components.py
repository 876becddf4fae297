"""The control plane beside etcd: keys, files and one manifest for each component, once etcd is served here.

Later than etcd only at the first start: an API server without etcd ends, and whoever ends often is started late. What
was written stays, whatever happens to the volume: losing etcd stops etcd and nothing else.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from pathlib import PurePosixPath

from protokube.agent import links
from protokube.agent.controlplane import key_folders, keys, manifestguard, restarts
from protokube.agent.wanted import FileText, MasterConfig
from protokube.agent.world import Turn
from protokube.config.places import own_folder
from protokube.errors import Refused
from protokube.host.files import write_atomic
from protokube.manifests import kubeconfig
from protokube.manifests.component import ComponentPod, pod, reads
from protokube.store import NotThere, layout

STEP = "components"
KUBE_PROXY = "kube-proxy"
ADVERTISED = "advertise-address"
PRIVATE, PUBLIC = 0o600, 0o644
STAGING = "/etc/kubernetes"
"""Where drafts lie: beside the manifests, where no kubelet looks."""


def sync(turn: Turn) -> None:
    manifestguard.guard_sync(turn)
    wanted = turn.wanted
    if not wanted.components:
        return
    if not _began(turn) and not any(links.is_linked(turn, home) for home in turn.homes):
        turn.waiting(STEP, "", "the control plane starts once a member of etcd is served here")
        return
    keys.ensure_shared(turn)
    keys.ensure(turn, certificates(turn))
    keys.give(turn, lambda: key_folders.used_by_each(wanted), certificates(turn))
    missing = _files(turn)
    pairs = restarts.wanted_keys(turn, wanted.components)
    for component in wanted.components:
        if lacks := sorted(missing & set(reads(component))):  # the others need not wait for it
            turn.waiting(STEP, component.name, f"the store has no secret {wanted.secret_files[lacks[0]]} for it")
            continue
        each = restarts.with_keys(at_home(component, turn.world.me.address), pairs)
        if _write(turn, f"{links.DIRECTORY}/{each.file_name}", pod(each).encode(), PUBLIC, staging=STAGING):
            turn.report.done(STEP, "manifest written", each.name)


def at_home(component: ComponentPod, address: str) -> ComponentPod:
    """A component on this machine: the API server tells others where it is, and a machine may have many addresses."""
    if component.name != restarts.API_SERVER or ADVERTISED in component.flags:
        return component
    return replace(component, flags={**component.flags, ADVERTISED: address})


def certificates(turn: Turn) -> list[str]:
    """All but the members' own: those come with their volume."""
    wanted = turn.wanted
    members = {f"{member.name}-" for each in wanted.etcd for member in each.members}
    return sorted(name for name in wanted.certificates if not any(name.startswith(start) for start in members))


def _began(turn: Turn) -> bool:
    return any(turn.world.inside(f"{links.DIRECTORY}/{each.file_name}").exists() for each in turn.wanted.components)


def _files(turn: Turn) -> set[str]:
    """Everything that is to be had; returned are the paths of secrets that the store does not have."""
    wanted, missing = turn.wanted, set[str]()
    for component in wanted.components:
        for path, text in component.files.items():
            _said(turn, path, _write(turn, path, text.encode(), PUBLIC))
    for path, user in wanted.kubeconfigs.items():
        server, own = server_of(wanted, user), own_folder(user)
        text = kubeconfig.by_files(
            wanted.cluster, server, user, ca=f"{own}/ca.crt", certificate=f"{own}/{user}.crt", key=f"{own}/{user}.key"
        )
        _said(turn, path, _write(turn, path, text.encode(), PRIVATE))
    for path, asset in (wanted.files | wanted.group_files.get(turn.world.me.group, {})).items():
        _own(turn, path, asset)
    for path, secret in wanted.secret_files.items():
        if not turn.world.inside(path).exists():
            try:
                content = turn.world.store.read(layout.secret(wanted.cluster, secret)).data
            except NotThere:
                missing.add(path)
                continue
            _said(turn, path, _write(turn, path, content, PRIVATE))
    return missing


def _own(turn: Turn, path: str, asset: FileText) -> None:
    """A file of the user's: one that cannot be written is told, and keeps nothing else back."""
    hint = "change it under `fileAssets` of the spec"
    try:
        _said(turn, path, _write(turn, path, b64decode(asset.text, validate=True), asset.mode))
    except Refused as why:
        turn.report.needs_a_person(STEP, why, path)
    except (FileExistsError, IsADirectoryError, NotADirectoryError, ValueError) as why:
        turn.report.needs_a_person(STEP, f"cannot be written: {why}", path, hint)
    except OSError as why:  # a full disk is a matter of time
        turn.waiting(STEP, path, f"cannot be written: {why.strerror or why}")


def server_of(wanted: MasterConfig, user: str) -> str:
    """The control plane asks the server beside it. What serves the machine's pods goes on when that one is away."""
    own = f"https://127.0.0.1:{wanted.api_port}"
    return (wanted.kubelet_api or own) if user == KUBE_PROXY else own


def _said(turn: Turn, path: str, written: bool) -> None:
    if written:
        turn.report.done(STEP, f"{path} written")


def _write(turn: Turn, path: str, data: bytes, mode: int, staging: str = "") -> bool:
    place = turn.world.inside(path)
    if ".." in PurePosixPath(path).parts:
        raise Refused(f"{path} is no place for a file", hint="say it without `..`")
    place.parent.mkdir(parents=True, exist_ok=True)
    return write_atomic(place, data, mode, staging=turn.world.inside(staging) if staging else None)
