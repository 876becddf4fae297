"""The single-threaded event loop."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

from protokube.local.base.reactor import Reactor


def test_what_is_due_is_called_in_order_and_what_was_called_off_is_not() -> None:
    reactor, fired = Reactor(), []
    reactor.after(0.03, reactor.stop)
    reactor.after(0.02, lambda: fired.append("second"))
    reactor.after(0.01, lambda: fired.append("first"))
    reactor.after(0.015, lambda: fired.append("never")).cancel()
    reactor.run()
    assert fired == ["first", "second"]


def test_what_is_due_at_once_comes_in_the_order_it_was_asked_for() -> None:
    reactor = Reactor()
    fired: list[int] = []
    for number in range(5):
        reactor.after(0, partial(fired.append, number))
    reactor.after(0, reactor.stop)
    reactor.run()
    assert fired == [0, 1, 2, 3, 4]


def test_every_so_often_is_again_and_again() -> None:
    reactor, beats = Reactor(), []

    def beat() -> None:
        beats.append(reactor.now())
        if len(beats) == 3:
            reactor.stop()

    reactor.every(0.01, beat)
    began = time.monotonic()
    reactor.run()
    assert time.monotonic() - began >= 0.03


def test_a_handle_that_can_be_read_is_called_back_until_it_is_forgotten() -> None:
    reactor, heard = Reactor(), []
    reader, writer = os.pipe()

    def readable() -> None:
        heard.append(os.read(reader, 1))
        if len(heard) == 2:
            reactor.forget(reader)
            reactor.forget(reader)
            reactor.after(0.02, reactor.stop)

    reactor.watch(reader, readable)
    os.write(writer, b"abc")
    reactor.run()
    os.close(reader)
    os.close(writer)
    assert heard == [b"a", b"b"]


def test_a_callback_may_forget_another_of_the_same_moment() -> None:
    reactor, heard = Reactor(), []
    pipes = [os.pipe() for _ in range(2)]

    def only_one(own: int) -> None:
        heard.append(own)
        for reader, _ in pipes:
            reactor.forget(reader)
        reactor.after(0.01, reactor.stop)

    for reader, writer in pipes:
        reactor.watch(reader, partial(only_one, reader))
        os.write(writer, b"x")
    reactor.run()
    for pipe in pipes:
        for handle in pipe:
            os.close(handle)
    assert len(heard) == 1


def test_a_signal_wakes_the_loop_and_is_called_back_once() -> None:
    reactor, heard = Reactor(), []
    before = signal.getsignal(signal.SIGUSR1)
    try:
        reactor.on_signals({signal.SIGUSR1: lambda: heard.append("usr1")})
        reactor.after(0.05, reactor.stop)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGUSR1)
        reactor.run()
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGUSR1, before)
    assert heard == ["usr1"]
