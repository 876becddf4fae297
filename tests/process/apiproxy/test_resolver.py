"""Names are resolved beside everything else: one that hangs costs nothing but a thread."""

from __future__ import annotations

import asyncio

from protokube.apiproxy.resolver import Resolver, system_lookup


def test_the_machine_is_asked_and_each_address_comes_once() -> None:
    assert "127.0.0.1" in system_lookup("localhost")
    assert asyncio.run(Resolver("127.0.0.7").addresses()) == ["127.0.0.7"]
