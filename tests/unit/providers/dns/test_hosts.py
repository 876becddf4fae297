"""A hosts file that others read, and write, at the same time."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fakes.name_servers import ZONE, a_text, an_address, change, create, delete
from protokube.errors import Refused, TryLater
from protokube.providers.dns import BadRecord, DnsProvider, Stale
from protokube.providers.dns import hosts as hosts_module
from protokube.providers.dns.hosts import HostsDns
from protokube.records import Record
from protokube.records.hostsfile import BEGIN, END
from protokube.records.names import make_record

LOCAL = b"127.0.0.1\tlocalhost\n# caf\xe9\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "hosts"
    path.write_bytes(LOCAL)
    return path


@pytest.fixture
def dns(path: Path) -> HostsDns:
    return HostsDns(ZONE, path)


def test_it_is_a_provider(dns: HostsDns) -> None:
    provider: DnsProvider = dns

    assert provider.zone == ZONE


def test_the_file_is_rewritten_in_place(dns: HostsDns, path: Path) -> None:
    before = path.stat()
    with path.open("rb") as bind_mounted:
        dns.apply(create(an_address("a")))
        dns.apply(delete(an_address("a")) + create(an_address("b")))

        assert bind_mounted.read() == path.read_bytes()
    assert (path.stat().st_ino, path.stat().st_mode) == (before.st_ino, before.st_mode)


def test_bytes_that_are_no_text_stay_as_they_are(dns: HostsDns, path: Path) -> None:
    dns.apply(create(an_address("a")))

    assert path.read_bytes() == LOCAL + f"{BEGIN}\n10.0.0.1\ta.{ZONE}\t# ttl 5\n{END}\n".encode()

    dns.apply(delete(an_address("a")))

    assert path.read_bytes() == LOCAL


def test_nothing_is_written_when_nothing_changes(dns: HostsDns, path: Path) -> None:
    dns.apply(create(an_address("a")))
    before = path.stat().st_mtime_ns

    dns.apply([change(an_address("a"), an_address("a"))])

    assert path.stat().st_mtime_ns == before


def test_a_file_that_is_not_there_is_made(tmp_path: Path) -> None:
    dns = HostsDns(ZONE, tmp_path / "new")

    assert dns.list_records() == ()
    dns.apply(create(an_address("a")))

    assert dns.list_records() == (an_address("a"),)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644


def test_records_of_other_zones_in_the_block_are_kept_and_not_ours(dns: HostsDns, path: Path) -> None:
    HostsDns("other.com", path).apply(create(make_record("x.other.com", "A", ["10.0.0.9"], 5)))
    dns.apply(create(an_address("a")))

    assert dns.list_records() == (an_address("a"),)
    assert dns.read(["x.other.com"]) == ()
    assert "x.other.com" in path.read_text("latin-1")


def test_entries_of_the_original_are_seen_and_stay_until_they_are_changed(dns: HostsDns, path: Path) -> None:
    begin, end = "# Begin host entries managed by kops - do not edit", "# End host entries managed by kops"
    path.write_bytes(LOCAL + f"{begin}\n10.0.0.7\tapi.{ZONE}\n{end}\n".encode())

    dns.apply(create(an_address("a")))

    assert dns.read([f"api.{ZONE}"]) == (an_address("api", "10.0.0.7", ttl=60),)
    assert b"kops" not in path.read_bytes()


def test_a_hosts_file_has_no_wildcards(dns: HostsDns, path: Path) -> None:
    with pytest.raises(BadRecord):
        dns.apply(create(an_address("*.apps")))

    assert path.read_bytes() == LOCAL


def test_a_block_that_somebody_removed_is_missed_at_once(dns: HostsDns, path: Path) -> None:
    dns.apply(create(an_address("a")))
    path.write_bytes(LOCAL)

    assert dns.read([f"a.{ZONE}"]) == ()
    with pytest.raises(Stale):
        dns.apply([change(an_address("a"), an_address("a", "10.0.0.2"))])


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    dns = HostsDns(ZONE, tmp_path)

    for call in (dns.list_records, lambda: dns.apply(create(an_address("a")))):
        with pytest.raises(Refused) as caught:
            call()
        assert str(tmp_path) in str(caught.value)


def test_a_file_in_a_folder_that_is_not_there_is_tried_later(tmp_path: Path) -> None:
    with pytest.raises(TryLater):
        HostsDns(ZONE, tmp_path / "none" / "hosts").apply(create(an_address("a")))


def test_a_lock_that_somebody_keeps_is_not_waited_for_for_ever(dns: HostsDns, path: Path) -> None:
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        began = time.monotonic()
        with pytest.raises(TryLater) as caught:
            dns.apply(create(an_address("a")))

    assert "fuser" in caught.value.hint
    assert hosts_module.LOCK_SECONDS <= time.monotonic() - began < hosts_module.LOCK_SECONDS + 20


def apply_in_the_end(dns: HostsDns, *records: Record) -> None:
    """Again, where the file was locked for so long that nothing was tried: a busy machine may stand still meanwhile."""
    while True:
        try:
            return dns.apply(create(*records))
        except TryLater as error:
            if "stays locked" not in error.message:
                raise


def test_a_file_that_is_replaced_while_we_wait_for_our_turn_is_the_one_that_gets_written(
    dns: HostsDns, path: Path
) -> None:
    """Opened, then replaced by another: what we wrote into the old one is noticed to be missing in the new one."""
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writer = threading.Thread(target=apply_in_the_end, args=(dns, an_address("a")))
        writer.start()
        while sum(each.resolve() == path for each in Path("/proc/self/fd").iterdir()) < 2:
            time.sleep(0.001)
        draft = path.with_name("draft")
        draft.write_bytes(b"# the new one\n")
        draft.replace(path)
    writer.join()

    assert dns.list_records() == (an_address("a"),)
    assert path.read_bytes().startswith(b"# the new one\n")


def test_a_file_that_is_replaced_under_our_hands_is_written_again(dns: HostsDns, path: Path) -> None:
    """A tool replaces the file again and again, as some do at boot; when it is done, our entries are there."""
    done = threading.Event()

    def replace() -> None:
        for number in range(40):
            draft = path.with_name(f"draft-{number}")
            draft.write_bytes(path.read_bytes() + b"# replaced\n")
            draft.replace(path)
        done.set()

    def put_back() -> None:
        missing = [record for record in wanted if record not in dns.list_records()]
        with suppress(Stale, TryLater):
            dns.apply(create(*missing))

    wanted = (an_address("n0"), an_address("n1"), an_address("n2"))
    tool = threading.Thread(target=replace)
    tool.start()
    while not done.is_set():
        put_back()
    tool.join()
    put_back()

    assert dns.list_records() == wanted
    assert path.read_bytes().startswith(LOCAL)
    assert path.read_bytes().count(BEGIN.encode()) == 1


def test_many_writers_of_ours_take_turns(path: Path) -> None:
    def write(number: int) -> None:
        apply_in_the_end(HostsDns(ZONE, path), an_address(f"n{number}"), a_text(f"n{number}", str(number)))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = HostsDns(ZONE, path).list_records()
    assert [record.key for record in found if record.type == "A"] == sorted(
        (f"n{number}.{ZONE}", "A") for number in range(12)
    )
    assert len(found) == 24
    assert path.read_bytes().startswith(LOCAL)


def test_killed_between_the_write_and_the_cut_it_leaves_blank_lines_and_no_half_entry() -> None:
    """A file that may not shrink stands in for a process that dies before it could cut."""
    handle = os.memfd_create("hosts", os.MFD_ALLOW_SEALING)
    try:
        path = Path(f"/proc/self/fd/{handle}")
        dns = HostsDns(ZONE, path)
        dns.apply(create(an_address("a"), an_address("b")))
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)

        with pytest.raises(Refused):
            dns.apply(delete(an_address("a")))

        assert path.read_text().rstrip("\n") == f"{BEGIN}\n10.0.0.1\tb.{ZONE}\t# ttl 5\n{END}"
        assert dns.list_records() == (an_address("b"),)
    finally:
        os.close(handle)
