"""Where keys lie on a master, and what of them a component is shown.

A pod is given folders, never single files: ours are renewed by another file of the same name, and whoever was given the
old one would keep it. So each component has a folder of its own, with what it uses and nothing else.
"""

from __future__ import annotations

DIRECTORY = "/srv/kubernetes"
"""Everything: for the agent, and for etcd, whose data are worth as much."""


def own_folder(component: str) -> str:
    """Where a component finds its keys, its kubeconfig and its configuration."""
    return f"{DIRECTORY}/{component}"
