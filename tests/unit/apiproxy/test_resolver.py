"""Names are resolved beside everything else: one that hangs costs nothing but a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence

import pytest

from protokube.apiproxy.resolver import MOST, Resolver
from protokube.errors import TryLater


def test_a_name_that_does_not_exist_is_told_in_words() -> None:
    def ask(name: str) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(TryLater, match="name or service not known"):
        asyncio.run(Resolver("x", ask).addresses())


@pytest.mark.parametrize("name", ["a" * 70, "a..b"])
def test_what_can_be_no_name_is_told_in_words_too(name: str) -> None:
    with pytest.raises(TryLater):
        asyncio.run(Resolver(name).addresses())


def test_a_resolver_that_hangs_is_given_up_and_asked_again_only_a_few_times() -> None:
    hang, lookups = threading.Event(), []

    def ask(name: str) -> Sequence[str]:
        lookups.append(name)
        hang.wait()
        return ["10.0.0.1"]

    async def ask_often() -> list[str]:
        resolver, messages = Resolver("x", ask), []
        for _ in range(MOST + 2):
            with pytest.raises(TryLater) as why:
                await resolver.addresses(patience=0.01)
            messages.append(why.value.message)
        hang.set()
        for each in threading.enumerate():
            if each.name == "resolving x":
                each.join()
        assert await resolver.addresses() == ["10.0.0.1"]
        return messages

    messages = asyncio.run(ask_often())
    assert messages[0] == "the resolver did not answer within 0.01 s"
    assert messages[-1] == f"the resolver hangs: {MOST} lookups have not returned"
    assert len(lookups) == MOST + 1


def test_an_answer_that_comes_after_the_end_disturbs_nobody() -> None:
    hang = threading.Event()

    def ask(name: str) -> Sequence[str]:
        hang.wait()
        return []

    with pytest.raises(TryLater):
        asyncio.run(Resolver("late", ask).addresses(patience=0.01))
    hang.set()
    for each in threading.enumerate():
        if each.name == "resolving late":
            each.join()
