"""Names without a zone: every master keeps its own hosts file, from what the provider says of volumes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.scenario.cluster import Stage
from clusters.scenario.host import Host

pytestmark = pytest.mark.usefixtures("unmeasured")

MINUTE = 60.0


@pytest.fixture
def zoneless(make_stage: Callable[..., Stage]) -> Stage:
    stage = make_stage(hosts_mode=True)
    stage.boot_all()
    stage.until(stage.healthy)
    return stage


def names(host: Host) -> dict[str, str | None]:
    return {f"etcd-{short}": host.resolve(f"etcd-{short}.internal.laptop") for short in "abc"}


def test_three_masters_find_each_other_through_their_own_hosts_files(zoneless: Stage) -> None:
    holders = {f"etcd-{short}": zoneless.holder_of(short).address for short in "abc"}
    zoneless.run(15)
    for host in zoneless.hosts.values():
        assert names(host) == holders
        assert "127.0.0.1\tlocalhost" in (host.root / "etc/hosts").read_text()
    assert zoneless.write()
    assert zoneless.dns.writes == 0


def test_a_successor_is_found_by_everybody_under_the_old_name(zoneless: Stage) -> None:
    old = zoneless.holder_of("b")
    zoneless.kill(old)
    new = zoneless.replace_machine(old)
    zoneless.until(zoneless.healthy, within=30)
    zoneless.run(15)
    assert all(names(each)["etcd-b"] == new.address for each in zoneless.hosts.values() if each.alive)


def test_a_block_that_somebody_removed_is_put_back_in_the_next_round(zoneless: Stage) -> None:
    host = zoneless.holder_of("a")
    (host.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    zoneless.round(host)
    assert None not in names(host).values()


def test_the_api_is_found_at_a_living_master(zoneless: Stage) -> None:
    zoneless.run(15)
    found = {each.resolve("api.internal.laptop") for each in zoneless.hosts.values()}
    assert found <= {each.address for each in zoneless.hosts.values()}


def test_an_idle_hour_without_a_zone_asks_for_the_machines_only_once(zoneless: Stage) -> None:
    zoneless.run(30)
    before, text = (
        dict(zoneless.cloud.calls),
        [(each.root / "etc/hosts").read_bytes() for each in zoneless.hosts.values()],
    )
    zoneless.run(60 * MINUTE)
    assert zoneless.cloud.calls["list_machines"] - before.get("list_machines", 0) == 0
    assert [(each.root / "etc/hosts").read_bytes() for each in zoneless.hosts.values()] == text


def test_the_provider_is_away_and_the_names_stay(zoneless: Stage) -> None:
    zoneless.run(15)
    zoneless.cloud.down = True
    zoneless.run(4 * MINUTE)
    assert len(zoneless.serving()) == 3
    assert all(None not in names(each).values() for each in zoneless.hosts.values())


def test_a_machine_that_the_provider_lists_a_little_late_is_found_all_the_same(zoneless: Stage) -> None:
    """A holder whom the list of machines did not show yet is asked for again."""
    old = zoneless.holder_of("b")
    zoneless.kill(old)
    new = zoneless.replace_machine(old)
    life = zoneless.cloud._lives[new.id]
    life.declared_dead = True  # only so that the list leaves it out
    zoneless.change_tags(zoneless.volume_of("b"), attached_to=new.id)
    zoneless.run(15)
    life.declared_dead = False
    zoneless.until(zoneless.healthy, within=30)


def test_a_lost_volume_is_replaced_without_a_zone_too(zoneless: Stage) -> None:
    zoneless.delete_volume(zoneless.volume_of("c"))
    zoneless.until(zoneless.healthy, within=MINUTE)
    assert zoneless.etcd["main"].histories == [1]
