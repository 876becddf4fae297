"""The rights of the dns-controller: the same however it runs, and no more than it uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from builders.config import completed
from protokube import __version__
from protokube.addons.rbac import DNS_CONTROLLER, rbac
from protokube.addons.value import Tree
from protokube.cli.dns.controller import dns_controller
from protokube.launch.addons import all_addons
from protokube.store.addons import read_manifest

FILE = Path(__file__).parents[3] / "deploy" / "dns-controller.yaml"


def deployed(text: str | None = None) -> list[Tree]:
    return list(yaml.safe_load_all(FILE.read_text() if text is None else text))


def with_an_update_server() -> str:
    """The file as somebody would have it who follows its comments."""
    lines = [re.sub(r"^( *)# (- --|- name|  \w|volume)", r"\1\2", line) for line in FILE.read_text().splitlines()]
    return "\n".join(line for line in lines if "--dns=aws" not in line)


def rules(trees: Iterator[Tree] | list[Tree] | tuple[Tree, ...]) -> dict[str, Any]:
    return {
        tree["kind"]: tree["rules"]
        for tree in trees
        if tree["kind"] in ("Role", "ClusterRole") and tree["metadata"]["name"] == DNS_CONTROLLER
    }


def container(trees: list[Tree]) -> dict[str, Any]:
    (deployment,) = (tree for tree in trees if tree["kind"] == "Deployment")
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def test_a_static_pod_and_a_deployment_have_exactly_the_same_rights() -> None:
    ours = rules(rbac().objects)
    assert set(ours) == {"Role", "ClusterRole"}
    assert rules(deployed()) == ours


def test_it_may_write_nothing_but_its_own_lease_and_events() -> None:
    writes = {
        (resource, verb, *rule.get("resourceNames", ()))
        for part in rules(rbac().objects).values()
        for rule in part
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }
    assert writes == {
        ("events", "create"), ("events", "patch"),
        ("leases", "create"), ("leases", "update", "protokube-dns-controller"),
    }  # fmt: skip


def test_rights_are_bound_to_the_one_who_runs() -> None:
    for trees, who in ((rbac().objects, "system:dns-controller"), (deployed(), "dns-controller")):
        bound = [
            tree for tree in trees if tree["kind"].endswith("Binding") and tree["roleRef"]["name"] == DNS_CONTROLLER
        ]
        assert sorted(tree["kind"] for tree in bound) == ["ClusterRoleBinding", "RoleBinding"]
        assert all([subject["name"] for subject in tree["subjects"]] == [who] for tree in bound)


def test_where_it_does_not_run_nobody_has_its_rights() -> None:
    off, on = completed(cloud="metal"), completed(cloud="aws")
    assert not rules(all_addons(off, read_manifest)[0].objects)
    assert rules(all_addons(on, read_manifest)[0].objects)


def test_every_flag_of_the_deployment_is_one_that_the_command_takes() -> None:
    program, command, *flags = container(deployed())["command"]
    assert (program, command) == ("/usr/local/bin/protokube", "dns-controller")
    params = dns_controller.make_context(command, list(flags)).params
    assert (params["provider"], params["zones"]) == ("aws-route53", ("example.com",))


def test_the_lines_for_a_server_of_ones_own_are_right_as_well() -> None:
    trees = deployed(with_an_update_server())
    _, command, *flags = container(trees)["command"]
    params = dns_controller.make_context(command, list(flags)).params
    assert (params["provider"], params["server"]) == ("rfc2136", "192.0.2.53")
    (mount,) = container(trees)["volumeMounts"]
    assert str(params["key_file"].parent) == mount["mountPath"]
    (deployment,) = (tree for tree in trees if tree["kind"] == "Deployment")
    assert [each["name"] for each in deployment["spec"]["template"]["spec"]["volumes"]] == [mount["name"]]


def test_the_probe_asks_where_the_command_serves_and_the_image_is_of_this_version() -> None:
    (option,) = (each for each in dns_controller.params if each.name == "metrics")
    controller = container(deployed())
    asked = controller["livenessProbe"]["httpGet"]
    assert option.default == f"{asked['host']}:{asked['port']}"
    assert controller["image"].rpartition(":")[2] == __version__
