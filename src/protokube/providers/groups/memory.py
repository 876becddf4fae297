"""Instance groups of the memory cloud. It starts machines at once, and replaces those that died only in `ensure`."""

from __future__ import annotations

from collections.abc import Sequence

from protokube.errors import InvalidRequest
from protokube.providers.clients.memory import MemoryCloud
from protokube.providers.groups import Group, check_name_and_size

FIELDS = ("zone", "master")
"""What a template may set: fields of a machine."""


class MemoryGroups:
    """Implements GroupProvider."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self.cloud = cloud

    def list_groups(self) -> Sequence[Group]:
        with self.cloud.operator_call("groups"):
            return [self.cloud.groups[name] for name in sorted(self.cloud.groups)]

    def ensure(self, group: Group) -> None:
        with self.cloud.operator_call("set_group"):
            check_name_and_size(group.name, group.size)
            if unknown := sorted(set(group.template) - set(FIELDS)):
                raise InvalidRequest("the template is invalid", saw=", ".join(unknown), want=" or ".join(FIELDS))
            self.cloud.groups[group.name] = group
            self._scale(group)

    def delete(self, name: str) -> None:
        with self.cloud.operator_call("delete_group"):
            if group := self.cloud.groups.pop(name, None):
                self._scale(Group(name=name, size=0, template=group.template))

    def _scale(self, group: Group) -> None:
        living = [machine.id for machine in self.cloud.machines_by_age() if machine.group == group.name]
        for machine in living[group.size :]:
            self.cloud.declare_dead(machine)
        for _ in range(group.size - len(living)):
            self.cloud.add_machine(group=group.name, **group.template)
