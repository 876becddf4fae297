from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused
from protokube.nodeup.units.install import read
from protokube.nodeup.units.names import checked, escape_path, mount_unit

KUBELET = """[Unit]
Description=WantedBy=not.target
[Install]
# WantedBy=comment.target
WantedBy=multi-user.target \\
   other.target
RequiredBy=needs.target
Alias=node.service kubelet.service
Also=kubelet.socket
"""


def test_the_install_section_says_which_links_enable_a_unit() -> None:
    section = read("kubelet.service", [KUBELET])

    assert section.links == (
        "multi-user.target.wants/kubelet.service",
        "other.target.wants/kubelet.service",
        "needs.target.requires/kubelet.service",
        "node.service",
    )
    assert section.also == ("kubelet.socket",)


def test_an_empty_assignment_in_a_drop_in_resets_a_list() -> None:
    assert read("a.service", [KUBELET, "[Install]\nWantedBy=\nWantedBy=late.target\nRequiredBy=\nAlias=\n"]).links == (
        "late.target.wants/a.service",
    )


@pytest.mark.parametrize("target", ["../../etc/passwd", "/etc/cron.d/x", "a b", "no-suffix"])
def test_no_link_leaves_the_folder_of_units(target: str) -> None:
    assert read("a.service", [f"[Install]\nWantedBy={target}\nAlias={target}\n"]).links in ((), ("a",))


@given(st.text())
def test_any_text_can_be_read_and_links_stay_below_the_folder(text: str) -> None:
    for link in read("a.service", [text, f"[Install]\nWantedBy={text}\nAlias={text}"]).links:
        assert ".." not in link.split("/")
        assert not link.startswith("/")


@pytest.mark.parametrize(
    "name", ["", "kubelet", "../kubelet.service", "a/b.service", "a b.service", "x" * 260 + ".path"]
)
def test_what_is_no_name_of_a_unit_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="is no name of a unit"):
        checked(name)


@pytest.mark.parametrize(
    ("path", "escaped"),
    [
        ("/", "-"),
        ("/var/lib/etcd", "var-lib-etcd"),
        ("//var//lib/", "var-lib"),
        ("/a-b/c d", "a\\x2db-c\\x20d"),
        ("/.hidden/.too", "\\x2ehidden-.too"),
        ("/ü", "\\xc3\\xbc"),
    ],
)
def test_paths_are_escaped_as_systemd_escape_does(path: str, escaped: str) -> None:
    assert escape_path(path) == escaped
    assert checked(mount_unit(path)) == f"{escaped}.mount"
