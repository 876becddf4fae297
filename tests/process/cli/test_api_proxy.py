"""`protokube api-proxy`: what it says before it begins, and what it keeps."""

from __future__ import annotations

import socket

from builders.command import Call
from protokube.cli.api_proxy import listen_at
from protokube.errors import ExitCode

NAME = ("--name", "api.internal.dev")


def test_a_port_that_somebody_has_is_told_with_the_way_to_find_out_who(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = call("api-proxy", *NAME, "--listen", f"127.0.0.1:{port}")
    assert answer.code == ExitCode.REFUSED
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use" in answer.err
    assert f"`ss -ltnp sport = :{port}`" in answer.err


def test_an_address_of_six_is_listened_at_too() -> None:
    with listen_at("[::1]:0") as listener:
        assert listener.getsockname()[0] == "::1"
