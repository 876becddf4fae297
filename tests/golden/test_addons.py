"""What a cluster gets once its API answers, for the minimal example: every object, byte for byte.

`make golden` writes the golden files anew; look at the diff before you commit it.
"""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.config import EXAMPLES, ROOT
from protokube.addons.value import Addon, decode, digest, encode
from protokube.config.complete import complete
from protokube.config.document import write_yaml
from protokube.launch.addons import all_addons
from protokube.spec.parse import parse

GOLDEN = Path(__file__).parent / "addons"
REFRESH = bool(os.environ.get("PROTOKUBE_REFRESH_GOLDEN"))
VERSIONS = ("1.20", "1.36")
MINORS = [f"1.{minor}" for minor in range(20, 37)]


def nothing_to_read(url: str) -> str:
    raise AssertionError(f"{url} is not to be read")


def addons_of(example: str = "minimal", version: str = "1.36") -> tuple[Addon, ...]:
    path = ROOT / "examples" / f"{example}.yaml"
    spec = parse([(path.name, path.read_text("utf-8"))])
    config = complete(replace(spec, cluster={**spec.cluster, "kubernetesVersion": f"{version}.0"}))
    return all_addons(config, nothing_to_read)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_add_ons_of_the_minimal_example_are_those_of_the_golden_file(version: str) -> None:
    trees: list[Any] = [tree for addon in addons_of(version=version) for tree in addon.labelled()]
    out = io.StringIO()
    write_yaml(trees, out)
    text = out.getvalue()
    file = GOLDEN / f"minimal-{version}.yaml"
    if REFRESH:
        file.write_text(text, "utf-8")

    assert text == file.read_text("utf-8")


@pytest.mark.parametrize("example", [path.stem for path in EXAMPLES])
def test_every_example_at_every_version_has_add_ons_that_read_back_the_same(example: str) -> None:
    for version in ("1.20", "1.28", "1.36"):
        addons = addons_of(example, version)

        assert [each.name for each in addons][:2] == ["rbac", "cluster-dns"]
        assert decode(encode(addons)) == addons
        assert digest(decode(encode(addons))) == digest(addons)


def test_the_budget_is_asked_for_in_a_version_that_its_server_serves() -> None:
    asked = {}
    for version in MINORS:
        (budget,) = (
            tree for addon in addons_of(version=version) for tree in addon.objects if tree["kind"].endswith("Budget")
        )
        asked[version] = budget["apiVersion"]

    assert asked == {version: "policy/v1beta1" if version == "1.20" else "policy/v1" for version in MINORS}


def test_the_dns_server_is_where_kubelets_send_pods_to() -> None:
    spec = parse([("minimal.yaml", (ROOT / "examples" / "minimal.yaml").read_text("utf-8"))])
    config = complete(spec)

    (service,) = (
        tree for addon in all_addons(config, nothing_to_read) for tree in addon.objects if tree["kind"] == "Service"
    )

    assert service["spec"]["clusterIP"] == config.cluster["kubelet"]["clusterDNS"]
