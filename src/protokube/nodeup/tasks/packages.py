"""Packages of the distribution: installed together, held where that is asked for, and no service started by it.

apt is used as it is (`nodeup.packages.apt`). For dnf only the commands are known (`nodeup.packages.dnf`): they were
never run on a machine of its kind, and docs/limits.md says so.
"""

from __future__ import annotations

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.nodeup.changes import Change
from protokube.nodeup.facts import PackageManager
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.packages import apt, dnf
from protokube.nodeup.packages.names import Asked, asked
from protokube.nodeup.packages.plan import Plan, plan
from protokube.nodeup.values import Packages


def look(wanted: Packages, machine: Machine) -> tuple[Change, ...]:
    """What differs. Refused where a user holds another version, or there is no package manager we know."""
    words = asked(wanted.names)
    match machine.facts.package_manager:
        case PackageManager.APT:
            return apt.look(words, machine, wanted.holds)
        case PackageManager.DNF:
            return seen_by_dnf(words, machine, wanted.holds).changes
        case _:
            raise no_manager(wanted, machine)


def apply(wanted: Packages, changes: tuple[Change, ...], machine: Machine, say: Say) -> None:  # noqa: ARG001
    """Install what is missing and hold it. TryLater if a lock is not released, or nothing can be downloaded."""
    words = asked(wanted.names)
    match machine.facts.package_manager:
        case PackageManager.APT:
            apt.apply(words, machine, say, wanted.holds)
        case PackageManager.DNF:
            apply_dnf(words, machine, say, wanted.holds)
        case _:
            raise no_manager(wanted, machine)


def no_manager(wanted: Packages, machine: Machine) -> ProtokubeError:
    return Refused(
        f"{machine.facts.distribution or 'this system'} has neither apt nor dnf, and {wanted.about} is to be installed",
        want="a distribution with one of them",
    )


def seen_by_dnf(wanted: tuple[Asked, ...], machine: Machine, holds: tuple[str, ...]) -> Plan:
    queried = machine.run(dnf.query(wanted), seconds=60.0, environment=dnf.ENVIRONMENT)
    locked = machine.run(dnf.list_locks(), seconds=120.0, environment=dnf.ENVIRONMENT)
    locks = "" if locked.code else locked.output  # before the first install there is no such plugin
    return plan(dnf.read(queried.output, locks), wanted, apt.held_by_us(machine), holds)


def apply_dnf(wanted: tuple[Asked, ...], machine: Machine, say: Say, holds: tuple[str, ...]) -> None:
    todo = seen_by_dnf(wanted, machine, holds)
    if todo.unhold:
        must(machine.run(dnf.unlock(todo.unhold), environment=dnf.ENVIRONMENT, say=say))
    if todo.install or todo.hold:
        must(machine.run(dnf.install(todo.install), seconds=apt.INSTALL_SECONDS, environment=dnf.ENVIRONMENT, say=say))
    if todo.hold:
        apt.remember(machine, todo.hold)
        must(machine.run(dnf.lock(todo.hold), environment=dnf.ENVIRONMENT, say=say))


def must(ran: Ran) -> None:
    if ran.code:
        raise TryLater("dnf failed", saw=" ".join(ran.output[-400:].split()), hint="/var/log/dnf.log has the rest")
