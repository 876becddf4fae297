"""What nodeup of one machine is told: from values to JSON and back, and what is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.config import EXAMPLES
from builders.examples import examples
from builders.setups import EVERYTHING, a_setup, config_of, derived
from protokube.errors import InvalidRequest
from protokube.launch.setup import VERSION, InvalidSetup, from_tree, read_setup, to_tree

KEY = "-----BEGIN"


def a_tree(**changes: Any) -> dict[str, Any]:
    return to_tree(a_setup("Node")) | changes


def the_problems(**changes: Any) -> list[str]:
    with pytest.raises(InvalidSetup) as refused:
        from_tree(a_tree(**changes))
    return [f"{each.path}: {each.message}" for each in refused.value.problems]


@pytest.mark.parametrize("path", [*EXAMPLES, EVERYTHING], ids=lambda each: each.stem)
def test_what_is_written_for_a_machine_is_read_back_whole(path: Path) -> None:
    config = config_of(path)
    for name, group in config.groups.items():
        if group["role"] in ("Master", "Node"):
            setup = derived(config, group=name, node_name="m-1", address="10.0.0.7").setup

            assert from_tree(json.loads(json.dumps(to_tree(setup)))) == setup


def test_a_value_that_is_not_said_takes_no_room() -> None:
    tree = a_tree()

    assert tree["version"] == VERSION
    assert not {"files", "hooks", "mounts", "proxy", "timeSync", "updatePolicy", "nodeName"} & tree.keys()


def test_a_setup_has_no_keys_of_the_cluster(tmp_path: Path) -> None:
    """Clouds keep launch data, and show them: keys are named, not contained."""
    text = json.dumps(to_tree(a_setup()))

    assert KEY not in text
    assert json.loads(text)["secrets"] == [
        "authority/etcd-client-ca", "authority/etcd-peer-ca", "authority/front-proxy-ca", "authority/kubernetes-ca",
        "key-pair/service-account",
    ]  # fmt: skip
    assert a_tree()["secrets"] == ["join"]


def test_one_of_a_newer_protokube_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidRequest) as refused:
        from_tree({"version": VERSION + 1, "somethingNew": {}}, "/etc/protokube/setup.json")

    assert str(refused.value) == (
        "/etc/protokube/setup.json was made by a newer version of protokube\n"
        f"  saw:  version {VERSION + 1}; this protokube reads up to {VERSION}\n"
        "  hint: install the newer version on this machine"
    )


def test_all_problems_are_reported_at_once_with_their_paths() -> None:
    with pytest.raises(InvalidSetup) as refused:
        from_tree(a_tree(colour="blue", group=7, kubernetes=None, files=[{"path": "/a"}], assets={"name": "x"}))

    assert str(refused.value) == (
        "5 problems in setup.json\n"
        "  assets: is not a list\n"
        "    hint: found an object\n"
        "  colour: no such field\n"
        "    hint: did you mean `cluster`?\n"
        "  files[0].content: is missing\n"
        "  group: is not text\n"
        "    hint: found a whole number\n"
        "  kubernetes: is not text\n"
        "    hint: found null\n"
        "  hint: it comes with the launch data; make them again"
    )


def test_a_misspelt_field_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidSetup) as refused:
        from_tree(a_tree(filez=[]))

    assert "hint: did you mean `files`?" in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"role": "Bastion"}, ["role: is not Master or Node"]),
        ({"agent": {"units": "systemd"}}, [
            "agent: is what masters have, and no others", "agent: its document lacks master, store, infrastructure"]),
        ({"pki": "srv/keys"}, ["pki: is not an absolute, normalized path"]),
        ({"files": [{"path": "/etc/../x", "content": ""}]}, ["files[0].path: is not an absolute, normalized path"]),
        ({"files": [{"path": "/x", "content": "no base64"}]}, ["files[0].content: is not base64"]),
        ({"files": [{"path": "/x", "content": "", "mode": 4095}]}, ["files[0].mode: is not a file mode"]),
        ({"files": [{"path": "/x", "content": ""}] * 2}, ["files: has /x twice"]),
        ({"hooks": [{"name": "a b"}]}, ["hooks[0].name: is not the name of a unit",
                                        "hooks[0]: has one of service, unit and container"]),
        ({"programs": [{"asset": "x", "path": "/x"}]}, ["programs[0].asset: there is no asset x"]),
        ({"images": [{"name": "x:1", "asset": "x"}]}, ["images[0].asset: there is no asset x"]),
        ({"assets": [{"name": "../x", "sha256": "0", "urls": ["ftp://x"]}]}, [
            "assets[0].name: is not a file name", "assets[0].sha256: is not a SHA-256 digest",
            "assets[0].urls: are not https, http or file URLs"]),
        ({"assets": [{"name": "x", "sha256": "0" * 64, "urls": ["https://u:p@host/x"]}]}, [
            "assets[0].urls: have a user or a password, which every process of the machine could read"]),
        ({"documents": [{"path": "/etc/x", "content": "?"}]}, [
            "documents[0].path: is not below /etc/protokube", "documents[0].content: is not base64"]),
        ({"sysctls": {"a b": "1"}}, ["sysctls.a b: is not the name of a kernel parameter"]),
        ({"kubernetes": "newest"}, ["kubernetes: is not a version"]),
        ({"timeSync": 1}, ["timeSync: is not true or false"]),
        ({"updatePolicy": "Automatic"}, ["updatePolicy: is not automatic, external or empty"]),
        ({"nodeName": "a\ud800"}, ["nodeName: is not text: it has half of a character"]),
        ({"sysctls": {"vm.swappiness": "1\nkernel.panic=0"}}, ["sysctls.vm.swappiness: is not one line"]),
        ({"sshKeys": ["ssh-ed25519 A\nssh-ed25519 B"]}, ["sshKeys[0]: is not one line"]),
        ({"proxy": {"url": "http://a\nExecStartPre=/bin/b"}}, ["proxy.url: is not one line"]),
        ({"mounts": [{"device": "sdb", "path": "/d"}]}, ["mounts[0].device: is not an absolute, normalized path"]),
    ],
    ids=str,
)  # fmt: skip
def test_parts_that_do_not_fit_are_named(changes: dict[str, Any], expected: list[str]) -> None:
    assert sorted(the_problems(**changes)) == sorted(expected)


def test_a_master_without_its_launch_document_is_refused() -> None:
    tree = to_tree(a_setup())
    del tree["agent"]

    with pytest.raises(InvalidSetup, match="agent: is what masters have, and no others"):
        from_tree(tree)


def test_a_launch_document_is_read_with_its_own_rules() -> None:
    tree = to_tree(a_setup())
    tree["agent"] = {**tree["agent"], "unit": "systemd"}

    with pytest.raises(InvalidSetup, match="agent: its document: unit: no such field"):
        from_tree(tree)


def test_what_is_wrong_is_shown_without_the_content_of_files() -> None:
    with pytest.raises(InvalidSetup) as refused:
        from_tree(a_tree(files=[{"path": "/x", "content": ["hunter2"]}]))

    assert "hunter2" not in str(refused.value)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
GOOD = to_tree(a_setup(hooks=[{"name": "a", "manifest": "b"}], fileAssets=[{"name": "f", "content": "x"}]))


@given(st.data(), JSON)
@examples(300)
def test_whatever_stands_in_one_place_is_read_or_refused(data: st.DataObject, value: Any) -> None:
    """Never another error: a person reads it on a console."""
    tree = json.loads(json.dumps(GOOD))
    place: Any = tree
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        deeper = place[key] if isinstance(place[key], dict | list) and place[key] else None
        if deeper is None or data.draw(st.booleans()):
            break
        place = deeper
    place[key] = value

    with suppress(InvalidRequest):
        found = from_tree(tree)
        assert from_tree(json.loads(json.dumps(to_tree(found)))) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "holds no JSON object"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("{}", "version: is not the version of this format"),
        ('{"version": true}', "version: is not the version of this format"),
    ],
)
def test_a_file_that_is_none_is_refused_by_its_name(text: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "setup.json"
    file.write_text(text)

    with pytest.raises(InvalidRequest) as refused:
        read_setup(file)

    assert expected in str(refused.value)
    assert str(file) in str(refused.value)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_setup(tmp_path / "setup.json")

    assert str(refused.value) == (
        f"cannot read {tmp_path}/setup.json: No such file or directory\n"
        "  hint: it comes with the launch data of a machine"
    )
