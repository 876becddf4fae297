"""The container images of a changed configuration, for local hosts whose kubelet is a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protokube.errors import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from protokube.launch.machine import MasterConfig
    from protokube.local.base.paths import Paths
    from protokube.providers.clients.local import LocalClient

SECONDS_FOR_IMAGES = 600.0


def images_of(wanted: MasterConfig) -> set[str]:
    return {each.pod.image for each in wanted.etcd} | {each.image for each in wanted.components}


def bring_images(paths: Paths, admin: LocalClient, images: Mapping[str, Path]) -> str:
    """Import what hosts that run do not have, and keep it for hosts to come, with what they were created with.

    A host that is replaced in the middle needs both.
    """
    from protokube.cli.render.table import several
    from protokube.local.base.paths import RUNTIME_CONFIG
    from protokube.local.bringup import CACHE
    from protokube.local.loading import image_store
    from protokube.local.loading.delivery import living
    from protokube.local.loading.load import deliver, found
    from protokube.local.node.containerd import RuntimeConfig
    from protokube.local.node.kubehost import ctr

    configs = [paths.host(row["name"]) / str(RUNTIME_CONFIG).lstrip("/") for row in living(admin)]
    created = [_full_names(RuntimeConfig.read(file).images) for file in configs if file.exists()]
    new = {name: file for name, file in _full_names(images).items() if any(name not in each for each in created)}
    if not new:
        return "the hosts have all images"
    former = {name: file for each in created for name, file in each.items()}
    with image_store.locked(paths.images, SECONDS_FOR_IMAGES):
        kept = image_store.owners(image_store.read_index(paths.images))
        with found([file for name, file in {**former, **new}.items() if name not in kept], paths.images) as good:
            image_store.keep(paths.images, [(each.file, each.kept) for each in good])
        wanted = [each for each in image_store.read_index(paths.images) if each.names.keys() & new.keys()]
        outcomes = deliver(paths, admin, ctr(CACHE), wanted, SECONDS_FOR_IMAGES, only_missing=True)
    if failed := [f"{each.host}: {each.why}" for each in outcomes if each.state in ("refused", "failed")]:
        raise TryLater("not every host has the new images", saw="; ".join(failed), hint="run it again")
    return f"{several(len(wanted), 'image')} on {several(len(outcomes), 'host')}"


def _full_names(images: Mapping[str, Path] | Mapping[str, str]) -> dict[str, str]:
    """Archives by the names under which the kubelet asks for their images."""
    from protokube.images.names import BadName, normalise

    try:
        return {normalise(name): str(file) for name, file in images.items()}
    except BadName as why:
        raise Refused(str(why), hint="correct the image in the spec") from why
