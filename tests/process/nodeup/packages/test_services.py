from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from protokube.nodeup.facts import Facts
from protokube.nodeup.machine import Machine, Ran
from protokube.nodeup.packages import services

USERS = b"#!/bin/sh\nexit 0\n"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "usr/sbin").mkdir(parents=True)
    return Machine(
        facts=Facts(distribution="debian", distribution_version="12"), run=lambda *_, **__: Ran(0, ""), root=tmp_path
    )


def there(machine: Machine) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in machine.path("/usr/sbin").iterdir()}


@pytest.mark.parametrize("users", [None, USERS])
def test_after_an_install_all_is_as_before(machine: Machine, users: bytes | None) -> None:
    if users is not None:
        machine.path(services.POLICY).write_bytes(users)
    before = there(machine)

    with services.kept_from_starting(machine) as variables:
        assert services.MARK in there(machine)["policy-rc.d"]
        assert not services.left_over(machine)

    assert variables == {services.VARIABLE: "yes"}
    assert there(machine) == before


class Cut(BaseException):
    """As a kill."""


def dying(method: Callable[..., object], after: list[int]) -> Callable[..., object]:
    def called(*arguments: object, **named: object) -> object:
        after[0] -= 1
        if after[0] < 0:
            raise Cut
        return method(*arguments, **named)

    return called


@pytest.mark.parametrize("users", [None, USERS])
@pytest.mark.parametrize("steps", range(12))
def test_killed_at_any_step_the_users_file_is_found_and_the_next_run_mends_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, users: bytes | None, steps: int
) -> None:
    """Every call that changes a file is one step; a killed process does nothing after it, and cleans nothing up."""
    if users is not None:
        machine.path(services.POLICY).write_bytes(users)
        machine.path(services.POLICY).chmod(0o755)
    before, left = there(machine), [steps]
    with monkeypatch.context() as patched:
        for name in ("replace", "unlink", "write_bytes", "chmod"):
            patched.setattr(Path, name, dying(getattr(Path, name), left))
        patched.setattr(os, "link", dying(os.link, left))
        patched.setattr(services, "alive", lambda _: False)
        try:
            with services.kept_from_starting(machine):
                pass
        except Cut:
            assert users is None or users in there(machine).values()
            assert there(machine) == before or services.left_over(machine)

    services.remove(machine)

    assert there(machine) == before
    assert not services.left_over(machine)


def test_a_file_that_the_user_wrote_meanwhile_stays(machine: Machine) -> None:
    with services.kept_from_starting(machine):
        machine.path(services.POLICY).write_bytes(USERS)

    assert there(machine) == {"policy-rc.d": USERS}


def test_a_link_of_the_user_is_put_back_as_a_link(machine: Machine) -> None:
    machine.path(services.POLICY).symlink_to("/etc/alternatives/policy-rc.d")

    with services.kept_from_starting(machine):
        assert not machine.path(services.POLICY).is_symlink()

    assert str(machine.path(services.POLICY).readlink()) == "/etc/alternatives/policy-rc.d"


def test_a_file_of_a_process_that_is_gone_is_left_over(machine: Machine) -> None:
    with services.kept_from_starting(machine):
        content = machine.path(services.POLICY).read_bytes()
        assert services.alive(content)
        assert not services.alive(content.replace(b"# Owner: ", b"# Owner: 9"))
        assert not services.alive(services.MARK)
