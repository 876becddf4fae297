"""Signals call back from a thread of their own, so what they call may wait for anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from protokube import signals

LOOP = """
import signal, threading
from protokube.signals import on_signals

wake, stop, calls = threading.Event(), threading.Event(), []

def hear():
    calls.append(1)
    wake.set()

def end():
    stop.set()
    wake.set()

on_signals({signal.SIGHUP: hear, signal.SIGTERM: end})
print("ready", flush=True)
while not (stop.is_set() and calls):
    wake.clear()
    wake.wait(0.000001)
print(len(calls))
"""


def test_a_storm_of_signals_never_stops_a_loop_that_waits_for_events() -> None:
    with subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        for _ in range(20_000):
            running.send_signal(signal.SIGHUP)
        running.send_signal(signal.SIGTERM)
        try:
            said, _ = running.communicate(timeout=20)
        finally:
            running.kill()

    assert running.returncode == 0
    assert int(said) > 0


def test_a_signal_that_nobody_asked_for_does_what_it_always_did() -> None:
    with subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.send_signal(signal.SIGUSR1)
        assert running.wait(20) == -signal.SIGUSR1


def test_however_often_a_signal_came_it_is_told_once() -> None:
    before = signal.getsignal(signal.SIGUSR2)
    reader = signals.readable([signal.SIGUSR2], blocking=False)
    try:
        for _ in range(3):
            signal.raise_signal(signal.SIGUSR2)

        assert signals.arrived(reader) == [signal.SIGUSR2]
        with pytest.raises(BlockingIOError):
            signals.arrived(reader)
    finally:
        os.close(signal.set_wakeup_fd(-1))
        signal.signal(signal.SIGUSR2, before)
        os.close(reader)
