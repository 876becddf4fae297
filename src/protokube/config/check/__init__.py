"""Validate a configuration: all problems at once, each with its path, its line and a hint.

`check_basics` runs before any decision, on the values that all decisions need; `whole` checks the complete
configuration; `check_files` the user's own files against those of the components; `unchanged` the rendered flags and
files of a complete configuration that is read again.
"""

from __future__ import annotations

from protokube.config.check.addresses import check_addresses
from protokube.config.check.basics import check_basics
from protokube.config.check.files import check_files
from protokube.config.check.groups import check_groups
from protokube.config.check.members import check_members
from protokube.config.check.names import check_names
from protokube.config.check.rendered import unchanged
from protokube.config.check.shown import check_shown
from protokube.config.check.versions import check_versions
from protokube.config.draft import Draft
from protokube.spec.parse import Spec
from protokube.spec.version import Version

__all__ = ["check_basics", "check_files", "unchanged", "whole"]


def whole(cluster: Draft, root: Draft, version: Version, spec: Spec) -> None:
    """Everything that can be wrong with a complete configuration."""
    check_addresses(cluster, root, version)
    check_groups(cluster, root, spec)
    check_members(cluster, root)
    check_names(cluster)
    check_shown(cluster)
    check_versions(cluster, root, version)
