"""Which of our files a component uses: those that its flags name in its own folder, and those that its kubeconfig does.

The rest of a master's keys, the authority's and the agent's own among them, it never sees. What a flag names elsewhere
is for the user to put there.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from protokube.agent.wanted import MasterConfig
from protokube.config.places import own_folder
from protokube.manifests.component import ComponentPod, reads


def used_by_each(wanted: MasterConfig) -> dict[str, list[str]]:
    """By component."""
    return {each.name: uses(wanted, each) for each in wanted.components}


def uses(wanted: MasterConfig, component: ComponentPod) -> list[str]:
    """Their names, sorted; what somebody else writes to that folder is not ours to copy."""
    folder, others = own_folder(component.name), {*wanted.files, *wanted.secret_files, *component.files}
    flags = (PurePosixPath(path) for path in reads(component) if path not in others)
    named = {path.name for path in flags if str(path.parent) == folder}
    if component.name in wanted.kubeconfigs.values():
        named |= {"ca.crt", f"{component.name}.crt", f"{component.name}.key"}
    return sorted(named & _ours(wanted))


def _ours(wanted: MasterConfig) -> set[str]:
    """What the agent keeps beside these folders."""
    authorities = {each["authority"] for each in wanted.certificates.values()}
    certificates = {f"{name}.{kind}" for name in wanted.certificates for kind in ("crt", "key")}
    pairs = {f"{name}.{kind}" for name in wanted.key_pairs for kind in ("key", "pub")}
    return {"ca.crt", "ca.key", *(f"{name}.crt" for name in authorities), *certificates, *pairs}
