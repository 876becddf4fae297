"""Instance groups of the local cloud, over the admin socket."""

from __future__ import annotations

from collections.abc import Sequence

from protokube.providers.clients.local import LocalClient
from protokube.providers.groups import Group


class LocalGroups:
    """Implements GroupProvider."""

    def __init__(self, admin: LocalClient) -> None:
        self.admin = admin

    def list_groups(self) -> Sequence[Group]:
        return [Group(**document) for document in self.admin.call("groups")]

    def ensure(self, group: Group) -> None:
        self.admin.call("set_group", name=group.name, size=group.size, template=dict(group.template))

    def delete(self, name: str) -> None:
        self.admin.call("delete_group", name=name)
