"""The first generation record of an etcd cluster: a new id, a unique token, and the volumes that may found it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from protokube.members.generation import Generation


def first_generation(etcd_cluster: str, token: str, volumes: Mapping[str, str], unique: str) -> Generation:
    """`unique` goes into the token, so that members of two creations never form one cluster."""
    return Generation(
        id=unique,
        etcd_cluster=etcd_cluster,
        token=f"{token}-{unique}",
        founders=dict(volumes),
        replacements={},
        open=True,
    )
