"""A canonical form of a member list: equal lists have equal bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from protokube.members.start_values import Listed


def list_tree(listed: Sequence[Listed]) -> list[dict[str, Any]]:
    """Sorted by id, in hex as etcdctl prints it."""
    return [
        {
            "id": f"{each.id:x}",
            "name": each.name,
            "peerURLs": list(each.peer_urls),
            "clientURLs": list(each.client_urls),
            "learner": each.learner,
        }
        for each in sorted(listed, key=lambda one: one.id)
    ]


def read_list(rows: Sequence[Mapping[str, Any]]) -> tuple[Listed, ...]:
    """The list that `list_tree` wrote. KeyError, TypeError or ValueError if it is none."""
    return tuple(
        Listed(
            id=int(each["id"], 16),
            name=str(each["name"]),
            peer_urls=tuple(map(str, each["peerURLs"])),
            client_urls=tuple(map(str, each["clientURLs"])),
            learner=each["learner"] is True,
        )
        for each in rows
    )


def list_bytes(listed: Sequence[Listed]) -> bytes:
    return json.dumps(list_tree(listed), sort_keys=True).encode()
