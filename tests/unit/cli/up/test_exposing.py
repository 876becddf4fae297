"""`up --expose`: what it is told, before anything is made."""

from __future__ import annotations

import pytest

from protokube.cli.up.exposing import ToExpose, check_exposed, read_exposed
from protokube.errors import InvalidRequest
from protokube.local.base.paths import Paths


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("web", ToExpose("127.0.0.1", None, "default/web", 0)),
        ("web:80", ToExpose("127.0.0.1", None, "default/web:80", 80)),
        ("8080:web:80", ToExpose("127.0.0.1", 8080, "default/web:80", 80)),
        ("8080:shop/web:http", ToExpose("127.0.0.1", 8080, "shop/web:http", 0)),
        ("0.0.0.0:8080:web", ToExpose("0.0.0.0", 8080, "default/web", 0)),
        ("localhost:8080:web", ToExpose("127.0.0.1", 8080, "default/web", 0)),
        ("[::1]:8080:web:80", ToExpose("::1", 8080, "default/web:80", 80)),
    ],
)
def test_a_port_is_read_with_its_address_and_its_service(text: str, wanted: ToExpose) -> None:
    assert read_exposed(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "8080", "8080:80", "0:web", "70000:web", "1.2.3:8080:web", "::1:80:web", "a b", "[x]:1:web"]
)
def test_anything_else_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_exposed(text)

    assert "such as web:80" in caught.value.want


def test_without_kubernetes_or_with_a_port_twice_nothing_begins() -> None:
    nowhere = Paths.of("never")

    with pytest.raises(InvalidRequest, match="needs Kubernetes"):
        check_exposed([read_exposed("web")], nowhere, kubernetes=False)
    with pytest.raises(InvalidRequest, match="twice"):
        check_exposed([read_exposed("8080:a"), read_exposed("8080:b")], nowhere, kubernetes=True)
    check_exposed([], nowhere, kubernetes=False)
