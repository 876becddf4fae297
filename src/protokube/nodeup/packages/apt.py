"""Install Debian's packages: look at dpkg's database, then have apt-get do the rest.

What is hard is what others left behind: an install that still holds the lock, a dpkg that was killed in the middle of
a package, package lists that are missing or too old. Each is recognised by apt-get's answer, mended once, and tried
again; what cannot be mended is refused, with the answer. apt-get never removes or downgrades anything here.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.host.files import read_or_none
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.packages import answers, locks, services, status
from protokube.nodeup.packages.answers import Answer, Trouble
from protokube.nodeup.packages.names import Asked
from protokube.nodeup.packages.plan import Plan, plan
from protokube.nodeup.placing import Rights, put_file

DATABASE, JOURNAL, LISTS = "/var/lib/dpkg/status", "/var/lib/dpkg/updates", "/var/lib/apt/lists"
HOLDS = "/var/lib/protokube/nodeup/holds"
"""Packages that we hold, one in each line: a hold of the user's is never taken away."""
APT = (
    "apt-get", "-q", "-y", "--no-install-recommends", "--no-remove",
    "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=3",
    "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
)  # fmt: skip
CONFIGURE = ("dpkg", "--configure", "-a", "--force-confdef", "--force-confold")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
    "NEEDRESTART_SUSPEND": "1",  # else Ubuntu restarts services after each install
    "UCF_FORCE_CONFFOLD": "1",
}
INSTALL_SECONDS, UPDATE_SECONDS = 1800.0, 300.0
ATTEMPTS = 6
"""Each cause is mended once; locks may come back."""
_ONE_AT_A_TIME = threading.Lock()
"""Tasks run in parallel, and dpkg does not."""


def look(wanted: Iterable[Asked], machine: Machine, holds: Collection[str] | None = None) -> tuple[Change, ...]:
    """What differs. Reads files only."""
    changes = seen(wanted, machine, holds).changes
    if services.left_over(machine):
        changes += (Change("policy-rc.d", "left by an install that was cut off", "as it was before"),)
    return changes


def seen(wanted: Iterable[Asked], machine: Machine, holds: Collection[str] | None = None) -> Plan:
    return plan(database(machine), wanted, held_by_us(machine), holds)


def database(machine: Machine) -> dict[str, status.Package]:
    """Every package that dpkg knows. Refused if there is no database."""
    journal = machine.path(JOURNAL)
    entries = sorted(each for each in journal.iterdir() if each.name.isdigit()) if journal.is_dir() else []
    texts = [read_or_none(each) for each in (machine.path(DATABASE), *entries)]
    if texts[0] is None:
        raise Refused(f"there is no database of dpkg: {DATABASE} is missing", hint="this is no system of Debian's kind")
    return status.read((text.decode(errors="replace") for text in texts if text is not None), machine.facts.processor)


def apply(wanted: Iterable[Asked], machine: Machine, say: Say, holds: Collection[str] | None = None) -> None:
    """Make it so, with the lists updated only if that is needed."""
    with _ONE_AT_A_TIME, services.kept_from_starting(machine) as variables:
        Installation(machine, say, variables).carry_out(tuple(wanted), holds)


def update_lists(machine: Machine, say: Say) -> str:
    """Fetch the lists of packages, for a machine that has none yet; return what could not be fetched."""
    with _ONE_AT_A_TIME:
        locks.wait(machine, say)
        return Installation(machine, say, {}).update()


class Installation:
    """One run of apt-get, with what it takes to get there."""

    def __init__(self, machine: Machine, say: Say, variables: Mapping[str, str]) -> None:
        self._machine, self._say = machine, say
        self._environment = ENVIRONMENT | dict(variables)
        self._mended: set[Trouble] = set()

    def carry_out(self, wanted: tuple[Asked, ...], holds: Collection[str] | None = None) -> None:
        locks.wait(self._machine, self._say)
        packages = database(self._machine)
        todo = plan(packages, wanted, held_by_us(self._machine), holds)
        if todo.install and self._was_interrupted(packages):
            self._configure()
            if damaged := status.damaged(database(self._machine).values()):
                self._install(damaged, "--reinstall")  # apt unpacks them again only if they are named
            todo = seen(wanted, self._machine, holds)
        if todo.unhold:
            self._mark("unhold", todo.unhold)
        if todo.install:
            self._install(tuple(map(str, todo.install)))
        if todo.hold:
            # Before dpkg knows of it: a hold without its record would be taken for one of the user's.
            remember(self._machine, todo.hold)
            self._mark("hold", todo.hold)

    def _was_interrupted(self, packages: Mapping[str, status.Package]) -> bool:
        journal = self._machine.path(JOURNAL)
        return bool(status.interrupted(packages.values())) or (journal.is_dir() and any(journal.iterdir()))

    def _install(self, packages: tuple[str, ...], *options: str) -> None:
        words = (*APT, "install", *options, *packages)
        self._say(f"installing {' '.join(packages)}")
        unfetched = ""
        for _ in range(ATTEMPTS):
            ran = self._run(words, INSTALL_SECONDS)
            if not ran.code:
                return
            answer = answers.read(ran.output)
            if answer.trouble is Trouble.LOCKED:
                locks.wait(self._machine, self._say)
            elif answer.trouble in self._mended:
                break
            elif answer.trouble in (Trouble.UNKNOWN, Trouble.DOWNLOAD):
                unfetched = self.update()
            elif answer.trouble is Trouble.INTERRUPTED:
                self._configure()
            else:
                break
            self._mended.add(answer.trouble)
        raise failure(answer, self._machine, unfetched)

    def update(self) -> str:
        """Fetch the lists of packages; return what could not be fetched."""
        self._say("updating the lists of packages")
        for _ in range(ATTEMPTS):
            ran = self._run((*APT, "update"), UPDATE_SECONDS)
            if not ran.code:
                return answers.not_fetched(ran.output)
            answer = answers.read(ran.output)
            if answer.trouble is not Trouble.LOCKED:
                break
            locks.wait(self._machine, self._say)
        if answer.trouble in (Trouble.SOURCES, Trouble.FULL, Trouble.READ_ONLY):
            raise failure(answer, self._machine, "")
        return answers.not_fetched(ran.output) or answer.saw

    def _configure(self) -> None:
        """Finish what a killed dpkg left. What it cannot finish, installing may: so a failure here is only told."""
        self._say("finishing an install that was cut off: dpkg --configure -a")
        ran = self._run(CONFIGURE, INSTALL_SECONDS)
        if ran.code:
            self._say(f"dpkg --configure -a: {answers.read(ran.output).saw}")

    def _mark(self, what: str, names: tuple[str, ...]) -> None:
        for _ in range(ATTEMPTS):
            ran = self._run(("apt-mark", what, *names), 60.0)
            if not ran.code:
                return
            answer = answers.read(ran.output)
            if answer.trouble is not Trouble.LOCKED:
                break
            locks.wait(self._machine, self._say)
        raise failure(answer, self._machine, "")

    def _run(self, words: tuple[str, ...], seconds: float) -> Ran:
        return self._machine.run(words, seconds=seconds, environment=self._environment, say=self._say)


def held_by_us(machine: Machine) -> frozenset[str]:
    return frozenset((read_or_none(machine.path(HOLDS)) or b"").decode(errors="replace").split())


def remember(machine: Machine, names: Iterable[str]) -> None:
    text = "".join(f"{name}\n" for name in sorted(held_by_us(machine) | set(names)))
    put_file(machine.path(HOLDS), text.encode(), Rights(0o644))


def failure(answer: Answer, machine: Machine, unfetched: str) -> ProtokubeError:
    """The error for a failed install, by who has to act."""
    facts = machine.facts
    system = f"{facts.distribution} {facts.distribution_version}".strip()
    names = ", ".join(answer.names)
    match answer.trouble:
        case Trouble.UNKNOWN if unfetched:
            text, hint = f"the lists of packages cannot be fetched, and {names} is in none that is here", NETWORK
            return TryLater(text, saw=unfetched, hint=hint)
        case Trouble.UNKNOWN:
            text = f"{system} has no package {names}, as its sources are configured"
            return Refused(text, saw=answer.saw, hint="`apt-cache policy` shows what the sources have")
        case Trouble.DOWNLOAD:
            return TryLater("packages cannot be downloaded", saw=unfetched or answer.saw, hint=NETWORK)
        case Trouble.LOCKED:
            return TryLater(answer.trouble.value, saw=answer.saw, hint="the next run goes on here")
        case Trouble.REMOVES:
            text = f"installing would remove {names or 'other packages'}, so nothing was installed"
            return Refused(text, saw=answer.saw, hint="remove them, if they may go, and run it again")
        case Trouble.DOWNGRADES | Trouble.HELD:
            text = f"{answer.trouble.value}, so nothing was installed: {names}"
            return Refused(
                text, saw=answer.saw, hint="change these packages yourself, or ask for the versions that are there"
            )
        case trouble:
            return Refused(
                f"packages cannot be installed: {trouble.value}", saw=answer.saw, hint=HINTS.get(trouble, LOGS)
            )


NETWORK = "see whether this machine reaches the servers in /etc/apt; a proxy is configured there, too"
LOGS = "/var/log/apt/term.log has the whole output"
HINTS = {
    Trouble.FULL: "make room on that disk",
    Trouble.SOURCES: "correct the file in /etc/apt that is named",
    Trouble.UNSIGNED: "install the key of that source",
    Trouble.READ_ONLY: "packages need a root file system that can be written",
    Trouble.CONFLICT: "`apt-get install --simulate` shows the same; correct the sources or the versions",
    Trouble.INTERRUPTED: "run `dpkg --configure -a` and see what it says",
}
