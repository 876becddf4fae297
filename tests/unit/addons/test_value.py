"""Add-ons as values."""

from __future__ import annotations

from builders.addons import an_addon, an_object
from protokube.addons.value import LABEL, digest, managed_part, ref


def test_the_same_object_in_another_version_of_its_group_is_the_same_object() -> None:
    old, new = ({**an_object("a", "X"), "apiVersion": f"policy/{version}"} for version in ("v1beta1", "v1"))

    assert ref(old) == ref(new)


def test_the_label_is_put_beside_those_there_are_and_the_add_on_stays_as_it_was() -> None:
    tree = an_object()
    tree["metadata"]["labels"] = {"a": "b"}
    addon = an_addon("dns", tree)

    (marked,) = addon.labelled()

    assert marked["metadata"]["labels"] == {"a": "b", LABEL: "dns"}
    assert tree["metadata"]["labels"] == {"a": "b"}


def test_another_order_is_another_digest() -> None:
    one, two = an_object("one"), an_object("two")

    assert digest([an_addon("a", one, two)]) != digest([an_addon("a", two, one)])
    assert digest([an_addon("a", one, two)]) == an_addon("a", one, two).digest


def test_what_others_say_of_an_object_is_not_ours() -> None:
    wanted = {"spec": {"replicas": 2, "ports": [1]}, "metadata": {"labels": {"a": "b"}}}
    there = {"spec": {"replicas": 3, "ports": [1, 2], "more": 1}, "metadata": {"labels": {"c": "d"}}, "status": {}}

    assert managed_part(wanted, there) == {
        "spec": {"replicas": 3, "ports": [1, 2]},
        "metadata": {"labels": {"a": None}},
    }
    assert managed_part(wanted, None) is None


def test_an_object_says_in_words_which_it_is() -> None:
    assert str(ref(an_object("a"))) == "ConfigMap kube-system/a"
    assert str(ref(an_object("a", "Deployment"))) == "Deployment.apps kube-system/a"
    assert str(ref(an_object("a", "Namespace", ""))) == "Namespace a"
