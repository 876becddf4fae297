"""Each thing that is made true of a machine has a reason that its user can read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.config import EXAMPLES, completed
from builders.setups import DEBIAN_12, EVERYTHING, MACHINES, ROCKY_9, an_asset, assets, config_of, derived
from protokube.launch.boot import LaunchDocument
from protokube.launch.derive import from_config
from protokube.launch.setups.values import FileSetup
from protokube.nodeup.facts import Facts
from protokube.nodeup.model.whole import tasks_of
from protokube.nodeup.reasons import REASONS, reason


def every_key() -> set[str]:
    found = set()
    for path in (*EXAMPLES, EVERYTHING):
        config = config_of(path)
        for name, group in config.groups.items():
            if group["role"] in ("Master", "Node"):
                own = derived(config, group=name, node_name="m-1").setup
                for facts in MACHINES.values():
                    machine = replace(facts, clock_error=99.0, time_service="")
                    if own.runtime.nri:
                        machine = replace(machine, available=(("containerd", "1.7.24"),))
                    found |= {each.key for each in tasks_of(own, machine)}
    config = completed(cloud="metal", nodes=1, containerd={"installCriCtl": True})
    master = replace(from_config(config), kubelet_api="https://127.0.0.1:3988")
    agent = LaunchDocument(master=master, store="memory://x", infrastructure={"kind": "memory"}, units="systemd")
    given = (*(each for each in assets() if each.name != "cni-plugins"), an_asset("crictl"), an_asset("pause.tar"))
    inventory = FileSetup(path="/etc/protokube/inventory.yaml", content="")
    setup = derived(config, assets=given, documents=[inventory], images={"pause:1": "pause.tar"}, agent=agent).setup
    found |= {each.key for each in tasks_of(setup, DEBIAN_12)}
    automatic = replace(setup, update_policy="automatic")
    return found | {each.key for each in tasks_of(automatic, ROCKY_9)}


@pytest.fixture(scope="module")
def keys() -> set[str]:
    return every_key()


def test_every_task_has_a_reason_and_every_reason_a_task(keys: set[str]) -> None:
    used = {each.key for key in keys if (each := reason(key))}

    assert sorted(key for key in keys if reason(key) is None) == []
    assert [each.key for each in REASONS if each.key not in used] == []


@pytest.mark.parametrize("facts", [DEBIAN_12, ROCKY_9], ids=lambda each: each.distribution)
def test_what_only_masters_have_is_said_so(facts: Facts) -> None:
    config = completed(cloud="metal", nodes=1)
    own = {role: {each.key for each in tasks_of(derived(config, role).setup, facts)} for role in ("Master", "Node")}

    for key in own["Master"] | own["Node"]:
        found = reason(key)
        assert found is not None
        assert found.masters is (key not in own["Node"]), key
