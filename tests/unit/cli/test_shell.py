"""In which host `shell` runs."""

from __future__ import annotations

import pytest

from protokube.cli.shell.command import choose
from protokube.errors import NotFound, Refused
from protokube.local.logs.known import Holder, Known, KnownHost


def a_host(name: str, number: int, *, alive: bool = True, master: bool = True) -> KnownHost:
    return KnownHost(name=name, group=name[:-2], number=number, alive=alive, master=master)


GONE, NODE = a_host("master-a-1", 1, alive=False), a_host("a-node-2", 2, master=False)
B, C = a_host("master-b-3", 3), a_host("master-c-4", 4)
KNOWN = Known((GONE, NODE, C, B), {"main/a": Holder(C.name), "main/b": Holder("", GONE.name)})


def test_without_a_name_it_is_the_first_master_that_runs() -> None:
    assert choose(None, KNOWN) is B
    assert choose(None, Known((NODE,))) is NODE


def test_a_member_stands_for_the_host_that_holds_it() -> None:
    assert choose("main/a", KNOWN) is choose("etcd-a", KNOWN) is choose(C.name, KNOWN) is C


def test_a_host_that_is_gone_is_found_and_told_apart_from_one_that_never_was() -> None:
    assert choose(GONE.name, KNOWN) is GONE
    with pytest.raises(NotFound) as caught:
        choose("master-b", KNOWN)
    assert caught.value.hint == "did you mean `master-b-3`?"


def test_where_nothing_runs_it_says_so() -> None:
    for name, known in ((None, Known((GONE,))), ("main/b", KNOWN)):
        with pytest.raises(Refused) as caught:
            choose(name, known)
        assert caught.value.code == "not-running"
