"""Which add-ons masters of different age want, and what one bad object does to the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.addons import MemoryKube, an_addon, an_object
from clusters.addons_masters import CURRENT, PLAIN, LateStore, Master
from protokube.addons.record import NUMBER, number_of
from protokube.addons.record import PATH as RECORD
from protokube.addons.value import Addon
from protokube.agent.cluster.addons import AGAIN
from protokube.errors import ProtokubeError, TryLater
from protokube.kube.client import ApiError
from protokube.store import Stored
from protokube.store.addons import put_addons
from protokube.store.memory import MemoryStore

DNS, METRICS = an_addon("dns", an_object("one")), an_addon("metrics", an_object("two"))
ONE, TWO, THREE = (f"/api/v1/namespaces/kube-system/configmaps/{name}" for name in ("one", "two", "three"))
GONE = ApiError(403, "Forbidden", "not for you")
BUSY = TryLater("the server is currently unable to handle the request")


class Site:
    """One cluster and its store."""

    def __init__(self, root: Path) -> None:
        self.root, self.kube, self.store = root, MemoryKube(), MemoryStore(root.name)

    def up(self, *addons: Addon) -> Stored:
        put_addons(self.store, PLAIN.cluster, addons)
        return self.store.read(CURRENT)

    def master(self, *launched_with: Addon) -> Master:
        return Master(self.root, self.kube, self.store, launched_with)

    def number(self) -> int:
        return number_of(self.kube.objects.get(RECORD))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_an_older_master_keeps_what_a_newer_one_applied(site: Site) -> None:
    site.up(DNS)
    old = site.master(DNS)
    old.round()
    old.round(elected=False)
    site.up(DNS, METRICS)
    site.master(DNS, METRICS).round()

    report = old.round()

    assert {ONE, TWO} <= site.kube.objects.keys()
    assert report.settled


def test_a_running_master_applies_what_a_second_up_asks_for(site: Site) -> None:
    site.up(DNS)
    master = site.master(DNS)
    master.round()
    site.up(DNS, METRICS)

    soon, later = master.round(), master.round(passed=AGAIN)

    assert (soon.sentence(), later.sentence()) == ("", "addons metrics: 1 object applied")
    assert site.number() == 2


def test_a_running_master_takes_away_what_a_second_up_no_longer_asks_for(site: Site) -> None:
    site.up(DNS, METRICS)
    master = site.master(DNS, METRICS)
    master.round()
    site.up(DNS)

    master.round(passed=AGAIN)

    assert ONE in site.kube.objects
    assert TWO not in site.kube.objects


def test_a_store_that_was_set_back_changes_nothing_and_is_told_until_a_person_decides(site: Site) -> None:
    past = site.up(DNS)
    site.up(DNS, METRICS)
    site.master().round()
    site.store.put(CURRENT, past.data)
    writes = site.kube.writes()
    master = site.master()

    first, second = master.round(), master.round()

    assert site.kube.writes() == writes
    assert first.person == second.person
    assert first.person[0].hint.endswith("delete the ConfigMap kube-system/protokube-addons, which takes nothing away")
    assert first.person[0].text == (
        "nothing is applied or pruned: the cluster has set 2 of its add-ons, and the store has only set 1"
    )

    del site.kube.objects[RECORD]  # as the hint says
    assert master.round(passed=AGAIN).settled
    assert TWO in site.kube.objects
    assert site.number() == 1


def test_where_nothing_is_current_any_more_a_master_does_not_go_back_to_what_it_was_launched_with(
    site: Site, tmp_path: Path
) -> None:
    site.up(DNS, METRICS)
    site.master(DNS).round()
    site.store = LateStore(tmp_path.name)
    site.store.behind = 1

    report = site.master(DNS).round()

    assert report.person[0].text.endswith("the store has no numbered set")
    assert TWO in site.kube.objects


def test_where_none_was_ever_named_current_what_masters_were_launched_with_is_applied_and_nothing_taken_away(
    site: Site,
) -> None:
    site.master(DNS, METRICS).round()

    assert site.master(DNS).round().settled

    assert {ONE, TWO} <= site.kube.objects.keys()
    assert site.number() == 0


def test_a_record_from_before_they_were_numbered_counts_as_older_than_all(site: Site) -> None:
    site.up(DNS, METRICS)
    site.master().round()
    del site.kube.objects[RECORD]["metadata"]["annotations"]
    site.up(DNS)

    site.master().round()

    assert TWO not in site.kube.objects
    assert site.number() == 2


def test_a_record_whose_number_was_spoilt_allows_nothing_and_is_written_anew(site: Site) -> None:
    site.up(DNS, METRICS)
    site.master().round()
    site.kube.objects[RECORD]["metadata"]["annotations"][NUMBER] = "many"
    site.up(DNS)

    site.master().round()

    assert TWO in site.kube.objects
    assert site.number() == 2


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"number": 0, "digest": ""}', b'{"number": "7"}'])
def test_where_nobody_can_read_what_is_current_nothing_is_touched_and_a_person_is_told(site: Site, data: bytes) -> None:
    site.up(DNS, METRICS)
    site.master().round()
    writes = site.kube.writes()
    site.store.put(CURRENT, data)

    report = site.master(DNS).round()

    assert site.kube.writes() == writes
    assert [each.text for each in report.person] == ["the number of the current add-ons cannot be read from the store"]
    assert report.bugs == []


class AwayStore(MemoryStore):
    """One that stops to answer."""

    asked = 0
    away = False

    def read(self, path: str) -> Stored:
        self.asked += path == CURRENT
        if self.away:
            raise TryLater("the store does not answer")
        return super().read(path)


def test_a_store_that_is_away_is_asked_now_and_then_and_nothing_is_touched_meanwhile(
    site: Site, tmp_path: Path
) -> None:
    site.store = store = AwayStore(tmp_path.name)
    site.up(DNS)
    master = site.master(DNS)
    master.round()
    writes, store.away, store.asked = site.kube.writes(), True, 0

    reports = [master.round(passed=passed) for passed in (AGAIN, 1, 1, AGAIN)]

    assert site.kube.writes() == writes
    assert [[each.text for each in report.waits] for report in reports] == [
        ["the store does not answer"], [], [], ["the store does not answer"],
    ]  # fmt: skip
    assert store.asked == 2


@pytest.mark.parametrize("why", [BUSY, GONE])
def test_an_object_that_cannot_be_looked_at_is_told_and_the_others_are_applied(site: Site, why: ProtokubeError) -> None:
    site.up(an_addon("mine", an_object("one")), an_addon("rbac", an_object("two")))
    site.kube.fails["get", ONE] = why
    master = site.master()

    report = master.round()

    assert TWO in site.kube.objects
    assert ("apply", ONE) not in site.kube.calls  # it may be somebody else's
    notes = report.waits if why is BUSY else report.person
    assert [(each.about, each.text) for each in notes] == [
        ("ConfigMap kube-system/one", f"cannot be looked at: {why.message}")
    ]

    site.kube.fails.clear()
    assert master.round(passed=AGAIN).settled
    assert ONE in site.kube.objects


def test_an_object_of_somebody_else_that_could_not_be_looked_at_once_is_still_not_ours(site: Site) -> None:
    site.kube.put(ONE, an_object("one", data={"whose": "theirs"}))
    site.up(an_addon("mine", an_object("one", data={"whose": "ours"})))
    site.kube.fails["get", ONE] = BUSY
    master = site.master()
    master.round()
    site.kube.fails.clear()

    master.round(passed=AGAIN)

    assert site.kube.objects[ONE]["data"] == {"whose": "theirs"}


def test_a_webhook_that_fails_for_one_object_keeps_no_other_waiting(site: Site) -> None:
    site.up(an_addon("mine", an_object("one")), an_addon("other", an_object("two")))
    site.kube.fails["apply", ONE] = TryLater("failed calling webhook")

    report = site.master().round()

    assert TWO in site.kube.objects
    assert [(each.about, each.text) for each in report.waits] == [
        ("ConfigMap kube-system/one", "failed calling webhook (mine)")
    ]


@pytest.mark.parametrize("call", ["get", "apply"])
def test_while_one_object_is_not_for_sure_as_wanted_nothing_is_taken_away(site: Site, call: str) -> None:
    site.up(DNS, METRICS)
    master = site.master()
    master.round()
    site.up(DNS)
    site.kube.fails[call, ONE] = BUSY

    report = master.round(passed=AGAIN)

    assert TWO in site.kube.objects
    assert not report.settled

    site.kube.fails.clear()
    assert master.round(passed=AGAIN).settled
    assert TWO not in site.kube.objects


@pytest.mark.parametrize("why", [BUSY, GONE])
def test_one_that_cannot_be_taken_away_is_told_and_tried_again_and_the_others_go(
    site: Site, why: ProtokubeError
) -> None:
    site.up(DNS, an_addon("old", an_object("two"), an_object("three")))
    master = site.master()
    master.round()
    site.up(DNS)
    site.kube.fails["delete", THREE] = why

    report = master.round(passed=AGAIN)

    assert TWO not in site.kube.objects
    assert [each.about for each in (report.waits if why is BUSY else report.person)] == ["ConfigMap kube-system/three"]

    site.kube.fails.clear()
    assert master.round(passed=AGAIN).settled
    assert THREE not in site.kube.objects
