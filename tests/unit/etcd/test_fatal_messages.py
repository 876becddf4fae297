"""etcd's last words are found in every form of its output, and never in what users make it write."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protokube.etcd.fatal_messages import find
from protokube.members.fatal_messages import Ending, FatalMessage

steady = settings(derandomize=True, deadline=None)
AT = datetime(2026, 11, 17, 2, 12, 52, 343000, tzinfo=UTC).timestamp()
SENTENCE = "tocommit(63) is out of range [lastIndex(13)]. Was the raft log corrupted, truncated, or lost?"
CLUSTER, MEMBER = 0xE8CD8B73BE03951F, 0xEAC897686FD2837B
STARTS = (
    '{"level":"info","ts":"2026-11-17T02:12:52.290Z","caller":"embed/etcd.go:305","msg":"starting an etcd server",'
    '"etcd-version":"3.4.23","data-dir":"/var/etcd/data"}'
)
RESTARTS = (
    '{"level":"info","ts":"2026-11-17T02:12:52.309Z","caller":"etcdserver/raft.go:586","msg":"restarting local member",'
    '"cluster-id":"e8cd8b73be03951f","local-member-id":"eac897686fd2837b","commit-index":12}'
)
PANICS = (
    '{"level":"panic","ts":"2026-11-17T02:12:52.343Z","logger":"raft","caller":"etcdserver/zap_raft.go:101","msg":"'
    f'{SENTENCE}","stacktrace":"go.etcd.io/etcd/raft.(*raftLog).commitTo\\n\\tgo.etcd.io/etcd/raft/log.go:203"}}'
)
LATER = (
    '{"level":"info","ts":"2026-11-17T02:12:52.343Z","caller":"rafthttp/stream.go:166","msg":"started stream writer'
    ' with remote peer","local-member-id":"eac897686fd2837b","remote-peer-id":"19670ad42317acba"}'
)
OF_GO = [f"panic: {SENTENCE}", "", "goroutine 144 [running]:", "go.etcd.io/etcd/raft.(*raftLog).commitTo(0xc0, 0x3f)"]
ZAP = [STARTS, RESTARTS, PANICS, LATER, *OF_GO]
CAPNSLOG = [
    "[WARNING] Deprecated '--logger=capnslog' flag is set; use '--logger=zap' flag instead",
    "2026-11-17 02:12:52.290169 I | etcdmain: etcd Version: 3.4.23",
    "2026-11-17 02:12:52.309000 I | etcdserver: restarting member eac897686fd2837b in cluster e8cd8b73be03951f at"
    " commit index 12",
    "2026-11-17 02:12:52.343000 I | rafthttp: peer 9dfa79ecf945a5b6 became active",
    f"raft2026/11/17 02:12:52 {SENTENCE}",
    *OF_GO,
]
CONSOLE = [
    "2026-11-17T02:12:52.290Z\tinfo\tembed/etcd.go:305\tstarting an etcd server\t"
    '{"etcd-version": "3.6.0", "data-dir": "/var/etcd/data"}',
    "2026-11-17T02:12:52.309Z\tinfo\tetcdserver/raft.go:586\trestarting local member\t"
    '{"cluster-id": "e8cd8b73be03951f", "local-member-id": "eac897686fd2837b", "commit-index": 12}',
    f"2026-11-17T02:12:52.343Z\tpanic\traft\tetcdserver/zap_raft.go:101\t{SENTENCE}",
    *OF_GO,
]
PROOF = FatalMessage(
    ending=Ending.LACKS_ACKNOWLEDGED, sentence=SENTENCE, at=AT, cluster_id=CLUSTER, member_id=MEMBER, acknowledged=63
)


def in_cri(lines: list[str]) -> list[str]:
    """As containerd and CRI-O write them: long lines come in parts."""
    at = "2026-11-17T02:12:52.343000000Z stderr"
    written = []
    for line in lines:
        written += [f"{at} P {line[:40]}", f"{at} F {line[40:]}"] if len(line) > 40 else [f"{at} F {line}"]
    return written


def in_docker(lines: list[str]) -> list[str]:
    time = "2026-11-17T02:12:52.343000000Z"
    return [json.dumps({"log": f"{line}\n", "stream": "stderr", "time": time}, separators=(",", ":")) for line in lines]


@pytest.mark.parametrize("form", [ZAP, CONSOLE], ids=["zap", "console"])
@pytest.mark.parametrize("wrapped", [list, in_cri, in_docker])
def test_the_panic_is_found_with_its_index_its_time_and_whose_it_is(form: list[str], wrapped) -> None:  # type: ignore[no-untyped-def]
    assert find(wrapped(form)) == (PROOF,)


def test_capnslog_of_3_4_is_in_the_time_of_the_machine() -> None:
    local = datetime(2026, 11, 17, 2, 12, 52, 343000).astimezone().timestamp()

    assert find(CAPNSLOG) == (replace(PROOF, at=local),)
    assert find(in_cri(CAPNSLOG)) == (PROOF,)


def test_with_a_log_level_above_info_nothing_says_whose_it_is() -> None:
    assert find([PANICS, *OF_GO]) == (replace(PROOF, cluster_id=None, member_id=None),)


def test_the_beginning_of_the_output_may_be_missing() -> None:
    assert find(OF_GO) == (replace(PROOF, cluster_id=None, member_id=None, at=None),)
    assert find([PANICS[30:], *OF_GO, *ZAP]) == (replace(PROOF, cluster_id=None, member_id=None, at=None), PROOF)


def test_a_panic_that_comes_again_counts_with_the_time_of_the_last_one() -> None:
    again = [line.replace("02:12:52", "02:19:00") for line in ZAP]
    (words,) = find([*ZAP, *again])
    assert words.at == AT + 368


def test_a_start_takes_back_that_data_is_corrupt_and_not_what_was_acknowledged() -> None:
    corrupt = '{"level":"fatal","ts":"2026-11-17T02:12:52.1Z","msg":"discovery failed","error":"walpb: crc mismatch"}'
    assert [each.ending for each in find([STARTS, corrupt])] == [Ending.CORRUPT]
    assert find([STARTS, corrupt, STARTS, RESTARTS]) == ()
    assert find([*ZAP, STARTS, RESTARTS]) == (PROOF,)


def test_the_next_start_of_another_member_is_not_the_one_that_panicked() -> None:
    other = RESTARTS.replace("eac897686fd2837b", "1")
    assert find([*ZAP, STARTS, other]) == (PROOF,)
    assert find([STARTS, other, PANICS])[0].member_id == 1


OUT_OF_RANGE = "runtime error: index out of range [562949953441792] with length 281474976710655"
NO_MEMORY = "runtime error: invalid memory address or nil pointer dereference"
OPENING = ["\tgo.etcd.io/bbolt/db.go:933", "go.etcd.io/etcd/mvcc/backend.newBackend({{0xc0, 0x5d}})"]


@pytest.mark.parametrize("wrapped", [list, in_cri, in_docker])
@pytest.mark.parametrize(
    ("message", "frames"),
    [
        (OUT_OF_RANGE, ["", "goroutine 133 [running]:", "go.etcd.io/bbolt.(*DB).page(...)"]),
        (
            NO_MEMORY,
            [
                "[signal SIGSEGV: segmentation violation code=0x1 addr=0x8 pc=0x9]", "", "goroutine 1 [running]:",
                "panic({0xd0, 0x19})", "\truntime/panic.go:884 +0x212", "runtime.goPanicIndex(0x2, 0x1)",
                "\truntime/panic.go:113 +0x7f", "go.etcd.io/bbolt.(*DB).page(0xc0)",
            ],
        ),
    ],
)  # fmt: skip
def test_a_panic_of_the_runtime_inside_of_the_database_is_corrupt_data(message, frames, wrapped) -> None:  # type: ignore[no-untyped-def]
    (found,) = find(wrapped([STARTS, f"panic: {message}", *frames, *OPENING]))
    assert found.ending is Ending.CORRUPT
    assert found.sentence.startswith(f"{message} (in go.etcd.io/bbolt.(*DB).page")


@pytest.mark.parametrize(
    "frames",
    [
        [],
        ["", "goroutine 1 [running]:"],
        [
            "",
            "goroutine 1 [running]:",
            "go.etcd.io/etcd/etcdserver.(*EtcdServer).apply(0xc0)",
            "go.etcd.io/bbolt.Open(0x1)",
        ],
    ],
)
def test_a_panic_of_the_runtime_elsewhere_says_nothing_about_the_data(frames: list[str]) -> None:
    assert find([STARTS, f"panic: {OUT_OF_RANGE}", *frames]) == ()


@pytest.mark.parametrize(
    "line",
    [
        SENTENCE,
        f"x{PANICS}",
        PANICS.replace('"panic"', '"warn"'),
        PANICS.replace("tocommit(63)", "tocommit(-63)"),
        PANICS.replace("tocommit(63)", "a key: tocommit(63)"),
        PANICS.replace("or lost?", "or lost? not at all"),
        f'{{"level":"warn","ts":"2026-11-17T02:12:52Z","msg":"apply request took too long","request":"{SENTENCE}"}}',
        f'{{"level":"warn","ts":"2026-11-17T02:12:52Z","msg":"apply request took too long","error":"{SENTENCE}"}}',
        f"2026-11-17 02:12:52.343000 W | etcdserver: {SENTENCE}",
        f'2026-11-17 02:12:52.343000 C | etcdserver: request "{SENTENCE}"',
        '{"level":"panic","ts":"2026-11-17T02:12:52Z","msg":"failed to open database","error":"input/output error"}',
        "unexpected fault address 0x7ff61800d000",
        "fatal error: fault",
    ],
)
def test_what_is_not_wholly_the_last_word_of_etcd_is_none(line: str) -> None:
    assert find([STARTS, RESTARTS, line]) == ()


@given(st.lists(st.text(max_size=60) | st.sampled_from(ZAP + CAPNSLOG + CONSOLE), max_size=12))
@steady
def test_any_output_is_read_without_a_failure(lines: list[str]) -> None:
    find(lines)


@given(st.text(), st.sampled_from(["request", "key", "remote-addr", "error", "msg"]))
@steady
def test_whatever_users_make_etcd_write_is_no_last_word(text: str, field: str) -> None:
    line = {"level": "warn", "ts": "2026-11-17T02:12:52Z", "msg": "apply request took too long", field: text + SENTENCE}
    assert find([json.dumps(line)]) == ()


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@steady
def test_the_index_is_the_one_that_was_acknowledged(acknowledged: int, last: int) -> None:
    line = PANICS.replace("(63)", f"({acknowledged})").replace("(13)", f"({last})")
    assert [each.acknowledged for each in find([line])] == [acknowledged]


@given(st.data())
@steady
def test_output_that_is_cut_anywhere_says_the_same_or_less(data: st.DataObject) -> None:
    text = "\n".join(ZAP)
    cut = text[data.draw(st.integers(0, len(text))) :]
    found = find(cut.split("\n"))
    assert {each.acknowledged for each in found} <= {63}
    assert {each.member_id for each in found} <= {MEMBER, None}
