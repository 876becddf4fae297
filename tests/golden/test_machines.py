"""What will be true of machines: examples, roles, distributions and versions of Kubernetes, as lists of tasks.

Two machines are written out: a master and a node of the example `bare-metal` on Debian 12. All others are shown by what
differs from these. `everything` sets whatever can be set, and is written out too.
`make golden` writes the golden files anew; look at the diff before you commit it.
"""

from __future__ import annotations

import difflib
import os
from functools import cache
from pathlib import Path

import pytest

from builders.config import EXAMPLES, ROOT
from builders.setups import DEBIAN_12, EVERYTHING, MACHINES, config_of, derived
from protokube.nodeup.facts import Facts
from protokube.nodeup.listing import listing
from protokube.nodeup.model.agent import DOCUMENT
from protokube.nodeup.model.whole import tasks_of

GOLDEN = Path(__file__).parent / "machines"
REFRESH = bool(os.environ.get("PROTOKUBE_REFRESH_GOLDEN"))
BASE = ROOT / "examples" / "bare-metal.yaml"
VERSIONS = ("1.20", "1.24", "1.28", "1.32")
ROLES = ("Master", "Node")
WRITTEN_BY_A_PERSON = {"everything.yaml"}


@cache
def shown(path: Path, role: str, facts: Facts = DEBIAN_12, version: str = "") -> str:
    """The launch document is another test's: here it would hide what is new."""
    setup = derived(config_of(path, version), role).setup
    return listing(tasks_of(setup, facts), brief={f"file {DOCUMENT}"})


def compared(role: str, text: str) -> str:
    """Task by task, what differs from the machine that is written out."""
    base, this = blocks(shown(BASE, role)), blocks(text)
    parts = [
        "".join(f"{line}\n" for line in changes(base.get(key, []), this.get(key, [])))
        for key in dict.fromkeys([*this, *base])
        if base.get(key) != this.get(key)
    ]
    return "\n".join(parts)


def blocks(text: str) -> dict[str, list[str]]:
    """The lines of each task by its key, which is the first of them."""
    parts = [block.strip("\n").splitlines() for block in text.split("\n\n")]
    return {lines[0]: lines for lines in parts}


def changes(before: list[str], after: list[str]) -> list[str]:
    """The key, and the lines that come and go."""
    if not before or not after:
        return [f"{'+' if after else '-'} {line}" for line in after or before]
    lines = (each for each in difflib.ndiff(before[1:], after[1:]) if each[0] in "+-")
    return [f"  {after[0]}", *lines]


def check(name: str, text: str) -> None:
    file = GOLDEN / name
    if REFRESH:
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def roles_of(path: Path) -> list[str]:
    roles = {group["role"] for group in config_of(path).groups.values()}
    return [role for role in ROLES if role in roles]


OTHERS = [(path, role) for path in EXAMPLES for role in roles_of(path) if path != BASE]


@pytest.mark.parametrize("role", ROLES)
def test_a_machine_of_a_rack_on_debian_12(role: str) -> None:
    check(f"bare-metal-{role.lower()}.txt", shown(BASE, role))


@pytest.mark.parametrize("role", ROLES)
def test_a_machine_with_every_setting_on_ubuntu(role: str) -> None:
    check(f"everything-{role.lower()}.txt", shown(EVERYTHING, role, MACHINES["ubuntu-24.04"]))


@pytest.mark.parametrize(("path", "role"), OTHERS, ids=[f"{path.stem}-{role}" for path, role in OTHERS])
def test_a_machine_of_another_example_differs_by_its_spec(path: Path, role: str) -> None:
    check(f"example-{path.stem}-{role.lower()}.diff", compared(role, shown(path, role)))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", [name for name in MACHINES if name != "debian-12"])
def test_another_distribution_differs_by_its_packages_and_its_runtime(name: str, role: str) -> None:
    check(f"distribution-{name}-{role.lower()}.diff", compared(role, shown(BASE, role, MACHINES[name])))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("version", VERSIONS)
def test_another_kubernetes_differs_by_its_kubelet(version: str, role: str) -> None:
    check(f"version-{version}-{role.lower()}.diff", compared(role, shown(BASE, role, version=version)))


def test_masters_and_nodes_differ_only_by_what_makes_a_master() -> None:
    """Byte for byte, all other tasks are the same."""
    role = {}
    for each in ROLES:
        setup = derived(config_of(BASE), each).setup
        role[each] = {task.key: task for task in tasks_of(setup, DEBIAN_12)}

    only = {each: sorted(role[each].keys() - role[other].keys()) for each, other in (ROLES, ROLES[::-1])}
    different = {key for key in role["Master"].keys() & role["Node"].keys() if role["Master"][key] != role["Node"][key]}

    assert only == {
        "Master": [
            "asset kubectl", "file /etc/protokube/agent.json", "installed /usr/local/bin/kubectl",
            "unit protokube-agent.service",
        ],
        "Node": [],
    }  # fmt: skip
    assert different == {
        "file /etc/default/kubelet", "file /etc/kubernetes/config/kubelet.yaml", "file /etc/protokube/machine.json",
    }  # fmt: skip


def test_no_golden_file_is_left_over() -> None:
    expected = {f"bare-metal-{role.lower()}.txt" for role in ROLES} | WRITTEN_BY_A_PERSON
    expected |= {f"everything-{role.lower()}.txt" for role in ROLES}
    expected |= {f"example-{path.stem}-{role.lower()}.diff" for path, role in OTHERS}
    for role in ROLES:
        expected |= {f"distribution-{name}-{role.lower()}.diff" for name in MACHINES if name != "debian-12"}
        expected |= {f"version-{version}-{role.lower()}.diff" for version in VERSIONS}

    assert {each.name for each in GOLDEN.iterdir()} == expected
