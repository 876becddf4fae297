"""The table of providers for commands; nothing is asked of a provider when it is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from protokube.errors import InvalidRequest
from protokube.providers import catalog
from protokube.providers.groups.local import LocalGroups
from protokube.providers.volumes.local import LocalVolumePool


def test_a_command_gets_the_providers_of_the_cloud_that_the_spec_names(tmp_path: Path) -> None:
    chosen = catalog.operator({"kind": "local", "socket": str(tmp_path / "admin.sock")})

    assert isinstance(chosen.volumes, LocalVolumePool)
    assert isinstance(chosen.groups, LocalGroups)
    assert chosen.groups.admin.path == tmp_path / "admin.sock"


@pytest.mark.parametrize("kind", ["aws", "", None, ["local"]])
def test_a_cloud_without_providers_for_commands_is_refused_with_those_there_are(kind: object) -> None:
    with pytest.raises(InvalidRequest, match="no cloud for commands") as caught:
        catalog.operator({"kind": kind})

    assert caught.value.want == "local"
