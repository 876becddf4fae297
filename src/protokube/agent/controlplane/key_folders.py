"""The key files each component may read: those in its own folder that its flags or its kubeconfig name.

It never sees the master's other keys, among them the authority's and the agent's own. A file that a flag names
elsewhere is the user's to provide.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from protokube.config.places import own_folder
from protokube.launch.machine import MasterConfig
from protokube.manifests.component import ComponentPod, reads


def used_by_each(wanted: MasterConfig) -> dict[str, list[str]]:
    """By component."""
    return {each.name: uses(wanted, each) for each in wanted.components}


def uses(wanted: MasterConfig, component: ComponentPod) -> list[str]:
    """File names, sorted; files in that folder that come from another source are not copied."""
    folder, others = own_folder(component.name), {*wanted.files, *wanted.secret_files, *component.files}
    flags = (PurePosixPath(path) for path in reads(component) if path not in others)
    named = {path.name for path in flags if str(path.parent) == folder}
    if component.name in wanted.kubeconfigs.values():
        named |= {"ca.crt", f"{component.name}.crt", f"{component.name}.key"}
    return sorted(named & _ours(wanted))


def _ours(wanted: MasterConfig) -> set[str]:
    """The files that the agent keeps in the master's key folder."""
    certificates = {f"{name}.{kind}" for name in wanted.certificates for kind in ("crt", "key")}
    pairs = {f"{name}.{kind}" for name in wanted.key_pairs for kind in ("key", "pub")}
    return {"ca.crt", "ca.key", *(f"{name}.crt" for name in wanted.authorities), *certificates, *pairs}
