"""The first generation of an etcd cluster: a new id, a token of its own, and the volumes that may found it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from protokube.members.generation import Generation


def first_generation(etcd_cluster: str, token: str, volumes: Mapping[str, str], unique: str) -> Generation:
    """`unique` makes the token of this creation differ from every other one's: members of two never mix."""
    return Generation(
        id=unique,
        etcd_cluster=etcd_cluster,
        token=f"{token}-{unique}",
        founders=dict(volumes),
        replacements={},
        open=True,
    )
