"""The control plane except etcd: keys, files and one manifest for each component, once etcd is served here.

It waits for etcd only at the first start: an API server without etcd exits, and the kubelet's crash back-off would
delay it. Files that were written stay, whatever happens to the volume: losing etcd stops etcd and nothing else.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from protokube.agent import links
from protokube.agent.controlplane import drift, key_folders, keys, manifest_files, manifestguard, restarts
from protokube.agent.round import Round
from protokube.config.places import own_folder
from protokube.errors import Refused
from protokube.host.files import write_atomic
from protokube.launch.machine import FileText, MasterConfig
from protokube.manifests import kubeconfig
from protokube.manifests.component import ComponentPod, digest, pod, reads
from protokube.store import NotThere, layout

STEP = "components"
KUBE_PROXY = "kube-proxy"
ADVERTISED = "advertise-address"
READS = "protokube.io/reads"
PRIVATE, PUBLIC = 0o600, 0o644
STAGING = "/etc/kubernetes"
"""Directory of temporary files: on the file system of the manifests, but not in the kubelet's manifest directory."""


def sync(round_: Round) -> None:
    manifestguard.sync(round_)
    wanted = round_.wanted
    if not wanted.components:
        return
    if not _began(round_) and not any(links.is_linked(round_, disk) for disk in round_.mounted):
        round_.waiting(STEP, "", "the control plane starts once a member of etcd is served here")
        return
    keys.ensure_shared(round_)
    keys.ensure(round_, certificates(round_))
    keys.give(round_, lambda: key_folders.used_by_each(wanted), certificates(round_))
    missing = _files(round_)
    pairs = restarts.wanted_keys(round_, wanted.components)
    for component in wanted.components:
        if lacks := sorted(missing & set(reads(component))):  # the other components do not wait for it
            round_.waiting(STEP, component.name, f"the store has no secret {wanted.secret_files[lacks[0]]} for it")
            continue
        each = restarts.with_keys(with_advertised_address(component, round_.edges.me.address), pairs)
        each = with_read_files(each, wanted.files_of(round_.edges.me.group))
        place = round_.edges.inside(f"{links.DIRECTORY}/{each.file_name}")
        place.parent.mkdir(parents=True, exist_ok=True)
        text = pod(each)
        written = manifest_files.write(place, text, staging=round_.edges.inside(STAGING))
        drift.note(round_, f"{links.DIRECTORY}/{each.file_name}", text.encode(), written=written)
        if written:
            round_.report.done(STEP, "manifest written", each.name)
    drift.sync(round_)


def with_advertised_address(component: ComponentPod, address: str) -> ComponentPod:
    """Set the API server's advertise address, unless configured: a machine may have many addresses."""
    if component.name != restarts.API_SERVER or ADVERTISED in component.flags:
        return component
    return replace(component, flags={**component.flags, ADVERTISED: address})


def with_read_files(component: ComponentPod, files: Mapping[str, FileText]) -> ComponentPod:
    """Add a digest of the user's files that its flags name: if one changes, the component restarts."""
    read = [(path, files[path].text) for path in reads(component) if path in files]
    return replace(component, annotations={**component.annotations, READS: digest(read)}) if read else component


def certificates(round_: Round) -> list[str]:
    """All but those of etcd members, which are issued when a member is served here."""
    wanted = round_.wanted
    members = {f"{member.name}-" for each in wanted.etcd for member in each.members}
    return sorted(name for name in wanted.certificates if not any(name.startswith(start) for start in members))


def _began(round_: Round) -> bool:
    return any(round_.edges.inside(f"{links.DIRECTORY}/{each.file_name}").exists() for each in round_.wanted.components)


def _files(round_: Round) -> set[str]:
    """Write all files; returns the paths of secrets that the store lacks."""
    wanted, missing = round_.wanted, set[str]()
    for component in wanted.components:
        for path, text in component.files.items():
            _report_written(round_, path, _write(round_, path, text.encode(), PUBLIC))
    for path, user in wanted.kubeconfigs.items():
        server, own = server_of(wanted, user), own_folder(user)
        text = kubeconfig.by_files(
            wanted.cluster, server, user, ca=f"{own}/ca.crt", certificate=f"{own}/{user}.crt", key=f"{own}/{user}.key"
        )
        _report_written(round_, path, _write(round_, path, text.encode(), PRIVATE))
    for path, asset in wanted.files_of(round_.edges.me.group).items():
        _write_user_file(round_, path, asset)
    for path, secret in wanted.secret_files.items():
        if not round_.edges.inside(path).exists():
            try:
                content = round_.edges.store.read(layout.secret(wanted.cluster, secret)).data
            except NotThere:
                missing.add(path)
                continue
            _report_written(round_, path, _write(round_, path, content, PRIVATE))
    return missing


def _write_user_file(round_: Round, path: str, asset: FileText) -> None:
    """Write a file from `fileAssets`: a failure is reported and does not block the rest."""
    hint = "change it under `fileAssets` of the spec"
    try:
        _report_written(round_, path, _write(round_, path, b64decode(asset.text, validate=True), asset.mode))
    except Refused as why:
        round_.report.needs_a_person(STEP, why, path)
    except (FileExistsError, IsADirectoryError, NotADirectoryError, ValueError) as why:
        round_.report.needs_a_person(STEP, f"cannot be written: {why}", path, hint)
    except OSError as why:  # such as a full disk: retried
        round_.waiting(STEP, path, f"cannot be written: {why.strerror or why}")


def server_of(wanted: MasterConfig, user: str) -> str:
    """The control plane uses the API server of its own machine. kube-proxy must work while that one is down."""
    own = f"https://127.0.0.1:{wanted.api_port}"
    return (wanted.kubelet_api or own) if user == KUBE_PROXY else own


def _report_written(round_: Round, path: str, written: bool) -> None:
    if written:
        round_.report.done(STEP, f"{path} written")


def _write(round_: Round, path: str, data: bytes, mode: int) -> bool:
    place = round_.edges.inside(path)
    if ".." in PurePosixPath(path).parts:
        raise Refused(f"{path} is no place for a file", hint="write the path without `..`")
    place.parent.mkdir(parents=True, exist_ok=True)
    written = write_atomic(place, data, mode)
    drift.note(round_, path, data, written=written)
    return written
