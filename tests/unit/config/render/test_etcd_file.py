"""etcd's own file: it ignores flags and environment once it reads one, so everything is in it, in its own form."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import completed, etcd_file, origin, table, the_problem
from protokube.config.complete import Config
from protokube.config.flags import ETCD_TABLES
from protokube.config.render.etcd_file import DURATIONS, FIELDS, FLAG_ONLY, LISTS, SECTIONS, milliseconds
from protokube.errors import Problem


def main(**fields: Any) -> Config:
    return completed(etcdClusters=[{"name": "main", **fields}])


def main_problem(**fields: Any) -> Problem:
    return the_problem(etcdClusters=[{"name": "main", **fields}])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250ms", 250),
        ("2s500ms", 2500),
        ("1m", 60_000),
        ("1h30m", 5_400_000),
        ("1.5s", 1500),
        ("0", 0),
        ("0s", 0),
        ("500us", 0.5),
        ("500µs", 0.5),
        ("1ns", 1e-6),
        ("-1s", -1000),
        ("+100ms", 100),
    ],
)
def test_a_duration_is_counted_in_milliseconds(text: str, expected: float) -> None:
    assert milliseconds(text) == pytest.approx(expected)


def test_a_member_is_told_who_it_is_where_it_listens_and_who_its_peers_are() -> None:
    content = etcd_file(completed(), "main", "b")

    assert content["name"] == "etcd-b"
    assert content["data-dir"] == "/var/etcd/data"
    assert content["advertise-client-urls"] == "https://etcd-b.internal.dev.example.com:4001"
    assert content["initial-advertise-peer-urls"] == "https://etcd-b.internal.dev.example.com:2380"
    assert content["listen-client-urls"] == "https://0.0.0.0:4001"
    assert content["listen-metrics-urls"] == "http://127.0.0.1:2390"
    assert content["initial-cluster"].split(",") == [
        f"etcd-{name}=https://etcd-{name}.internal.dev.example.com:2380" for name in "abc"
    ]


def test_all_members_of_a_cluster_are_told_the_same_peers_and_clusters_do_not_know_each_other() -> None:
    config = completed()
    peers = {key: {etcd_file(config, key, name)["initial-cluster"] for name in "abc"} for key in ("main", "events")}

    assert len(peers["main"]) == len(peers["events"]) == 1
    assert "events" not in "".join(peers["main"])
    assert all("etcd-events-" in part for part in "".join(peers["events"]).split(","))


def test_clients_and_peers_are_checked_by_authorities_of_their_own() -> None:
    content = etcd_file(completed(), "events", "c")

    assert content["client-transport-security"] == {
        "cert-file": "/srv/kubernetes/etcd-events-c-server.crt",
        "key-file": "/srv/kubernetes/etcd-events-c-server.key",
        "client-cert-auth": True,
        "trusted-ca-file": "/srv/kubernetes/etcd-client-ca.crt",
    }
    assert content["peer-transport-security"]["trusted-ca-file"] == "/srv/kubernetes/etcd-peer-ca.crt"
    assert content["peer-transport-security"]["cert-file"] == "/srv/kubernetes/etcd-events-c-peer.crt"
    assert content["peer-transport-security"]["client-cert-auth"] is True


def test_the_environment_names_the_file_and_holds_what_the_user_adds() -> None:
    config = main(env=[{"name": "GOMAXPROCS", "value": "2"}, {"name": "EMPTY"}])

    assert config.rendered[""]["etcd"]["main"]["a"]["env"] == {
        "ETCD_CONFIG_FILE": "/etc/kubernetes/config/etcd.yaml",
        "GOMAXPROCS": "2",
        "EMPTY": "",
    }


def test_environment_that_etcd_would_ignore_beside_its_file_is_a_problem() -> None:
    problem = main_problem(env=[{"name": "ETCD_QUOTA_BACKEND_BYTES", "value": "1"}])

    assert problem.path == "etcdClusters.main.env[0]"
    assert "would be ignored" in problem.message
    assert "extraFlags" in problem.hint


def test_environment_without_a_name_is_a_problem() -> None:
    assert main_problem(env=[{"value": "x"}]).message == "has no `name`"


def test_times_are_written_in_the_unit_etcd_counts_in() -> None:
    content = etcd_file(main(heartbeatInterval="250ms", leaderElectionTimeout="2s500ms", logLevel="warn"))

    assert (content["heartbeat-interval"], content["election-timeout"], content["log-level"]) == (250, 2500, "warn")


def test_times_nobody_says_are_left_to_etcd() -> None:
    content = etcd_file(completed())

    assert not {"heartbeat-interval", "election-timeout", "log-level"} & content.keys()


def test_any_other_setting_is_written_under_the_name_of_its_flag() -> None:
    fields = {"auto-compaction-mode": "periodic", "auto-compaction-retention": "30m", "--snapshot-count": 50000}
    content = etcd_file(main(extraFlags=fields))

    assert content["auto-compaction-mode"] == "periodic"
    assert content["auto-compaction-retention"] == "30m"  # etcd wants this one as text, a duration or a number
    assert content["snapshot-count"] == 50000


def test_settings_with_another_place_in_the_file_go_there() -> None:
    fields = {"peer-auto-tls": False, "socket-reuse-port": True, "peer-cert-allowed-cn": "a,b"}
    content = etcd_file(main(extraFlags=fields))

    assert content["peer-transport-security"]["auto-tls"] is False
    assert content["peer-transport-security"]["allowed-cn"] == ["a", "b"]
    assert content["socket-options"] == {"reuse-port": True}
    assert content["peer-transport-security"]["client-cert-auth"] is True


def test_durations_are_nanoseconds_in_the_file_because_with_text_there_etcd_does_not_start() -> None:
    fields = {"grpc-keepalive-min-time": "10s", "experimental-corrupt-check-time": "12h", "backend-batch-interval": "0"}
    content = etcd_file(main(extraFlags=fields))

    assert content["grpc-keepalive-min-time"] == 10_000_000_000
    assert content["experimental-corrupt-check-time"] == 12 * 3600 * 10**9
    assert content["backend-batch-interval"] == 0


def test_lists_are_lists_in_the_file() -> None:
    content = etcd_file(main(extraFlags={"cipher-suites": "TLS_A,TLS_B", "log-outputs": ["stdout"]}))

    assert content["cipher-suites"] == ["TLS_A", "TLS_B"]
    assert content["log-outputs"] == ["stdout"]


def test_what_is_no_duration_is_a_problem() -> None:
    problem = main_problem(extraFlags={"grpc-keepalive-timeout": "soon"})

    assert problem.path == "etcdClusters.main.extraFlags.grpc-keepalive-timeout"
    assert problem.message == "'soon' is not a duration such as 30s, 5m or 1h30m"


def test_a_flag_etcd_does_not_have_is_a_problem_with_a_near_match() -> None:
    problem = main_problem(extraFlags={"snapshot-counts": 1})

    assert problem.message == "etcd 3.6 has no flag --snapshot-counts"
    assert problem.hint == "did you mean `snapshot-count`?"


@pytest.mark.parametrize(
    ("version", "flag"),
    [
        (version, flag)
        for version in ("3.5.21", "3.6.8")
        for flag in sorted(FLAG_ONLY & table(f"etcd-{version[:3]}")["etcd"].keys())
    ],
)
def test_what_the_file_cannot_hold_is_a_problem_not_a_silence(version: str, flag: str) -> None:
    problem = main_problem(version=version, extraFlags={flag: "1s"})

    assert problem.message == f"etcd {version} has --{flag} only as a flag, and ignores flags if it reads a file"


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("3.4.23", "experimental-watch-progress-notify-interval"),
        ("3.5.24", "experimental-watch-progress-notify-interval"),
        ("3.6.8", "watch-progress-notify-interval"),
    ],
)
def test_etcd_tells_api_servers_every_few_seconds_how_far_a_quiet_watch_is(version: str, name: str) -> None:
    content = etcd_file(main(version=version))
    assert {key: value for key, value in content.items() if "progress" in key} == {name: 5_000_000_000}


@pytest.mark.parametrize("name", ["watch-progress-notify-interval", "experimental-watch-progress-notify-interval"])
def test_another_interval_takes_the_place_of_ours_under_either_name(name: str) -> None:
    content = etcd_file(main(version="3.6.8", extraFlags={name: "1m"}))
    assert {key: value for key, value in content.items() if "progress" in key} == {name: 60_000_000_000}


def test_a_setting_under_its_former_name_too_is_a_problem_because_etcd_does_not_start_with_both() -> None:
    fields = {"corrupt-check-time": "12h", "experimental-corrupt-check-time": "12h"}

    problem = main_problem(version="3.6.8", extraFlags=fields)

    assert problem.path.endswith(".experimental-corrupt-check-time")
    assert problem.message == "is the old name of --corrupt-check-time: etcd does not start with both"


def test_names_of_peers_are_checked_by_the_file_only_from_the_version_that_reads_them_there() -> None:
    problem = main_problem(version="3.4.13", extraFlags={"peer-cert-allowed-cn": "a"})

    assert "etcd 3.4.13 has --peer-cert-allowed-cn only as a flag" in problem.message


@pytest.mark.parametrize(("flag", "field"), FIELDS.items())
def test_a_setting_with_a_field_of_its_own_is_said_there(flag: str, field: str) -> None:
    problem = main_problem(extraFlags={flag: "1"})

    assert (problem.message, problem.hint) == ("there is a field for it", f"set etcdClusters.main.{field}")


def test_every_special_case_is_a_flag_that_etcd_really_has() -> None:
    known = {flag for series in ETCD_TABLES for flag in table(f"etcd-{series}")["etcd"]}

    assert {*SECTIONS, *FIELDS, *FLAG_ONLY, *LISTS, *DURATIONS} <= known


def test_an_entry_of_the_file_follows_from_its_member_and_cluster() -> None:
    found = origin(completed(), "etcd.main.a.file.initial-cluster")

    assert found.of == ("etcdClusters.main.members.a", "etcdClusters.main")
