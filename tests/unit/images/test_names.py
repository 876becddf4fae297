"""Names of images: short ones are spelled out as containerd does, complete ones stay, and what is none is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from protokube.images.names import BadName, normalise

DIGEST = f"sha256:{'a' * 64}"
PART = st.from_regex(r"[a-z0-9]{1,6}([._-][a-z0-9]{1,6})?", fullmatch=True)
TAG = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,12}", fullmatch=True)
REGISTRY = st.sampled_from(["", "localhost/", "localhost:5000/", "quay.io/", "registry.k8s.io/", "[::1]:5000/", "Big/"])


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("me/web", "docker.io/me/web:latest"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("index.docker.io/me/web:1", "docker.io/me/web:1"),
        ("localhost/web", "localhost/web:latest"),
        ("localhost:5000/web:1", "localhost:5000/web:1"),
        ("registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9"),
        ("gcr.io/a/b/c", "gcr.io/a/b/c:latest"),
        (f"busybox@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
        (f"busybox:1@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
        ("a--b__c.d_e", "docker.io/library/a--b__c.d_e:latest"),
    ],
)
def test_a_name_is_spelled_out_as_the_kubelet_asks_for_it(short: str, whole: str) -> None:
    assert normalise(short) == whole


@pytest.mark.parametrize(
    "name",
    [
        "", ":", "/", "@", "web:", "web@", "Web", "me/Web", "web:-1", "web:a b", "a//b", "-web", "web-", "a___b",
        "web@sha256:short", "a" * 64, "quay.io/", "web:1:2", "x" * 256, "bad host.io/web", "web\n", "../web.tar",
    ],
)  # fmt: skip
def test_what_names_no_image_is_refused_with_what_is_wrong(name: str) -> None:
    with pytest.raises(BadName, match=re.escape(repr(name))):
        normalise(name)


@given(REGISTRY, st.lists(PART, min_size=1, max_size=3), st.none() | TAG, st.booleans())
def test_a_name_that_is_spelled_out_stays_as_it_is(registry: str, parts: list[str], tag: str | None, at: bool) -> None:
    name = f"{registry}{'/'.join(parts)}{f':{tag}' if tag else ''}{f'@{DIGEST}' if at else ''}"

    whole = normalise(name)

    assert normalise(whole) == whole
    assert whole.endswith(DIGEST if at else f":{tag or 'latest'}")
    assert "." in whole.partition("/")[0] or ":" in whole.partition("/")[0] or whole.startswith(("localhost/", "Big/"))


@given(st.text(max_size=40))
def test_any_text_has_a_name_spelled_out_or_is_refused(text: str) -> None:
    try:
        whole = normalise(text)
    except BadName:
        return
    assume(whole != text)
    assert normalise(whole) == whole
