"""`status` lists the ports that lead to Services."""

from __future__ import annotations

from dataclasses import asdict

from builders.view import a_view
from protokube.cli.render.status import render_status
from protokube.cli.render.tree import view_tree
from protokube.view.values import ExposedView

OPEN = ExposedView(
    address="127.0.0.1", local_port=8080, namespace="default", service="web", port="80", listening=True
)  # fmt: skip
SHUT = ExposedView(
    address="::1", local_port=9000, namespace="shop", service="db", port="", listening=False, why="it is in use"
)  # fmt: skip
FAILING = ExposedView(**{**asdict(OPEN), "why": "no pod behind it is ready"})


def test_each_port_is_shown_with_its_service_and_why_it_does_not_work() -> None:
    lines = render_status(a_view(exposed=(OPEN, SHUT, FAILING)))

    at = next(number for number, line in enumerate(lines) if line.startswith("PORT"))
    assert [line.split(maxsplit=2) for line in lines[at + 1 : at + 4]] == [
        ["127.0.0.1:8080", "default/web:80", "open"],
        ["[::1]:9000", "shop/db", "not open: it is in use"],
        ["127.0.0.1:8080", "default/web:80", "open; the last connection failed: no pod behind it is ready"],
    ]


def test_a_cluster_that_exposes_nothing_says_nothing_of_it() -> None:
    assert not [line for line in render_status(a_view()) if line.startswith("PORT")]
    assert view_tree(a_view())["exposed"] == []


def test_as_data_it_says_the_same_and_does_not_make_a_cluster_unready() -> None:
    tree = view_tree(a_view(exposed=(SHUT,)))

    assert tree["exposed"] == [
        {"address": "::1", "localPort": 9000, "namespace": "shop", "service": "db", "port": "", "listening": False,
         "why": "it is in use"},
    ]  # fmt: skip
    assert tree["ready"]
