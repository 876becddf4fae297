"""Directories of keys on a master, and which of them each component sees.

Pods mount directories, never single files: renewal replaces a file by a new one of the same name, and a bind mount of a
file would keep the old one. So each component has its own directory, with what it uses and nothing else.
"""

from __future__ import annotations

DIRECTORY = "/srv/kubernetes"
"""All keys: for the agent, and for etcd, whose data is as sensitive."""


def own_folder(component: str) -> str:
    """The directory of a component's keys, kubeconfig and configuration."""
    return f"{DIRECTORY}/{component}"
