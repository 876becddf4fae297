"""The draft keeps the values of the user, and the ledger knows where every value came from."""

from __future__ import annotations

import pytest

from builders.config import FILE, a_draft, a_ledger
from protokube.config.draft import Origin
from protokube.errors import Where


@pytest.mark.parametrize("value", [0, False, "", [], {}])
def test_what_the_user_said_stands_even_when_it_is_nothing(value: object) -> None:
    draft = a_draft({"maxPods": value})

    assert draft.decide("maxPods", 110, "what Kubernetes is tested with") == value
    assert draft.tree == {"maxPods": value}
    assert draft.ledger.origins == {}


def test_a_gap_is_filled_and_the_reason_kept() -> None:
    draft = a_draft(path="kubelet")

    assert draft.decide("maxPods", 110, "what Kubernetes is tested with") == 110
    assert draft.get("maxPods") == 110
    assert draft.ledger.origins == {"kubelet.maxPods": Origin("what Kubernetes is tested with")}


def test_the_first_decision_wins_over_later_ones() -> None:
    draft = a_draft()
    draft.decide("zones", ["a"], "first")

    assert draft.decide("zones", ["b"], "second") == ["a"]
    assert draft.ledger.origins["zones"].because == "first"


def test_an_origin_is_the_users_if_it_has_a_place_derived_if_it_follows_and_else_a_default() -> None:
    assert Origin(where=Where(FILE, 3)).kind == "user"
    assert Origin("its upper half", ("nonMasqueradeCIDR",)).kind == "derived"
    assert Origin("rarely used").kind == "default"


def test_only_a_value_taken_over_as_it_is_from_one_place_is_inherited() -> None:
    assert Origin("", ("kubelet.maxPods",)).inherited
    assert not Origin("the cluster's", ("kubelet.maxPods",)).inherited
    assert not Origin("", ("a", "b")).inherited
    assert not Origin().inherited


def test_a_mapping_inside_is_made_when_it_is_not_there() -> None:
    draft = a_draft()
    draft.under("topology").decide("masters", "public", "usual")

    assert draft.tree == {"topology": {"masters": "public"}}
    assert draft.under("topology").at("masters") == "topology.masters"


def test_named_things_come_with_their_full_path() -> None:
    draft = a_draft({"subnets": {"a": {"zone": "x"}, "b": {}}})

    assert [(name, each.path) for name, each in draft.each("subnets")] == [("a", "subnets.a"), ("b", "subnets.b")]
    assert list(draft.each("nothing")) == []


def test_inheriting_leaves_what_is_there_and_notes_the_source_of_what_is_not() -> None:
    draft = a_draft({"maxPods": 0}, path="g")
    draft.inherit("maxPods", 110, "kubelet.maxPods")
    draft.inherit("logLevel", 2, "kubelet.logLevel")

    assert draft.tree == {"maxPods": 0, "logLevel": 2}
    assert draft.ledger.source("g.logLevel") == "kubelet.logLevel"
    assert draft.ledger.source("g.maxPods") == "g.maxPods"


def test_a_part_of_a_value_came_from_where_the_whole_did() -> None:
    ledger = a_ledger(subnets=7)
    ledger.origins["zones"] = Origin("the zones of the subnets", ("subnets",))

    assert ledger.origin("subnets.a.cidr") == Origin(where=Where(FILE, 7))
    assert ledger.origin("zones[1]") == ledger.origins["zones"]
    assert ledger.origin("hooks[0].name") is None


def test_a_list_item_is_looked_up_by_its_index_before_its_list() -> None:
    ledger = a_ledger(zones=3)
    ledger.places = {**ledger.places, "zones[1]": Where(FILE, 5), "a.b[0]": Where(FILE, 9)}

    assert ledger.where("zones[1]") == Where(FILE, 5)
    assert ledger.where("zones[0]") == Where(FILE, 3)
    assert ledger.where("a.b[0].c.d") == Where(FILE, 9)


def test_the_place_of_a_derived_value_is_that_of_what_it_was_derived_from() -> None:
    ledger = a_ledger(networkCIDR=4)
    ledger.origins["subnets.a.cidr"] = Origin("the next free part", ("networkCIDR",))
    ledger.origins["deeper"] = Origin("as that", ("subnets.a.cidr",))

    assert ledger.where("deeper") == Where(FILE, 4)
    assert ledger.where("nowhere", "subnets.a.cidr") == Where(FILE, 4)
    assert ledger.where("nowhere") is None


def test_values_derived_from_each_other_do_not_make_the_search_for_a_place_run_for_ever() -> None:
    ledger = a_ledger()
    ledger.origins |= {"a": Origin("as b", ("b",)), "b": Origin("as a", ("a",))}

    assert ledger.where("a") is None


def test_problems_and_warnings_carry_the_place_of_the_first_path_that_has_one() -> None:
    ledger = a_ledger(podCIDR=6)
    ledger.problem("serviceClusterIPRange", "overlaps", "move it", "podCIDR")
    ledger.warn("podCIDR", "is small")

    assert (ledger.problems[0].where, ledger.problems[0].hint) == (Where(FILE, 6), "move it")
    assert str(ledger.warnings[0]) == "spec.yaml:6 podCIDR: is small"


def test_what_a_version_cannot_take_is_a_problem_in_a_cluster_and_a_remark_in_one_only_looked_at() -> None:
    real, shown = a_ledger(), a_ledger()
    shown.for_reading = True
    for ledger in (real, shown):
        ledger.unfit("kubelet.x", "has no --x")

    assert (len(real.problems), len(real.warnings)) == (1, 0)
    assert (len(shown.problems), len(shown.warnings)) == (0, 1)
