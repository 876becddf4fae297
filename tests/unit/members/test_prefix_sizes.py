"""What fills an etcd: prefixes, counted in full and weighed by examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.members.prefix_sizes import EXAMPLES, Examples, Share, prefix_of, shares


@pytest.mark.parametrize(
    ("key", "prefix"),
    [
        ("/registry/pods/default/a", "/registry/pods"),
        ("/registry/leases/kube-node-lease/node-1", "/registry/leases"),
        ("/registry/example.com/widgets/default/w", "/registry/example.com/widgets"),
        ("/registry/apiregistration.k8s.io/v1", "/registry/apiregistration.k8s.io"),
        ("/registry/ranges/serviceips", "/registry/ranges"),
        ("/protokube/elected", "/protokube"),
        ("compact_rev_key", "compact_rev_key"),
        ("fill/1", "fill"),
        ("", ""),
        ("/", "/"),
    ],
)
def test_the_prefix_of_a_key_is_its_kind(key: str, prefix: str) -> None:
    assert prefix_of(key) == prefix


@given(st.integers(0, 3000))
def test_examples_are_few_and_spread_over_all_keys(count: int) -> None:
    found = Examples()
    for number in range(count):
        found.add(str(number))

    assert found.count == count
    assert len(found.keys) <= EXAMPLES
    if count:
        assert found.keys[0] == "0"
        assert int(found.keys[-1]) >= count // 2 - 1
        assert len(found.keys) >= min(count, EXAMPLES // 2)


def test_shares_come_out_with_the_largest_first_and_what_was_not_read_is_left_out() -> None:
    many, big, unread = Examples(), Examples(), Examples()
    for number in range(100):
        many.add(f"/many/{number}")
    big.add("/big/1")
    unread.add("/unread/1")
    sizes = dict.fromkeys(many.keys, 10) | {"/big/1": 5000}

    found = shares({"/many": many, "/big": big, "/unread": unread}, sizes)

    assert found == (Share("/big", 1, 5000), Share("/many", 100, 1000))
