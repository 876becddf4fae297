"""The name servers in resolv.conf."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.local.dns.resolvers import LOCAL, MOST, Resolvers, nameservers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nameserver 192.0.2.1\n", ("192.0.2.1",)),
        (
            "# nameserver 192.0.2.9\n;nameserver 192.0.2.8\nnameserver\t127.0.0.53 # stub\n",
            ("127.0.0.53",),
        ),
        ("search a.example\nnameserver 2001:db8::1\nnameserver fe80::1%eth0\n", ("2001:db8::1", "fe80::1%eth0")),
        ("nameserver 192.0.2.1\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n", ("192.0.2.1", "192.0.2.2")),
        ("".join(f"nameserver 192.0.2.{n}\n" for n in range(1, 6)), ("192.0.2.1", "192.0.2.2", "192.0.2.3")),
        ("nameserver\nnameserver dns.example\nnameservers 192.0.2.1\n", LOCAL),
        ("", LOCAL),
    ],
)
def test_name_servers_are_read_as_the_c_library_reads_them(text: str, found: tuple[str, ...]) -> None:
    assert nameservers(text) == found


@given(st.text())
def test_no_text_breaks_it_and_all_that_is_found_can_be_asked(text: str) -> None:
    found = nameservers(text)
    assert 1 <= len(found) <= MOST
    for each in found:
        ip_address(each)


def test_a_file_that_changes_is_read_again_and_one_that_goes_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 192.0.2.1\n")
    resolvers = Resolvers(file)
    assert resolvers.current() == ("192.0.2.1",)

    file.write_text("nameserver 192.0.2.2\n")
    os.utime(file, ns=(1, 1))
    assert resolvers.current() == ("192.0.2.2",)

    other = tmp_path / "other"
    other.write_text("nameserver 192.0.2.3\n")
    other.replace(file)
    assert resolvers.current() == ("192.0.2.3",)

    file.unlink()
    assert resolvers.current() == LOCAL
