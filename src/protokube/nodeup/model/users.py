"""SSH public keys of operators, for root, beside the keys that are there: none of the user's is ever removed.

OpenSSH reads `authorized_keys2` too, by default: so ours are a file of their own, and keys that leave the spec leave
the machine. The configuration of Fedora and its relatives names `authorized_keys` alone; there each missing key is
appended, and a key that leaves the spec has to be removed by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.values import Command, Directory, File, Task

FOLDER = "/root/.ssh"
OURS, THEIRS = f"{FOLDER}/authorized_keys2", f"{FOLDER}/authorized_keys"
HEAD = "# Written by protokube, from sshPublicKeys of the spec. Put other keys into authorized_keys.\n"
MISSING = f'for key; do grep --quiet --line-regexp --fixed-strings -- "$key" {THEIRS} || exit 1; done'
APPEND = (
    f'umask 077; touch {THEIRS}; test -z "$(tail -c 1 {THEIRS})" || echo >> {THEIRS};'
    f' for key; do grep --quiet --line-regexp --fixed-strings -- "$key" {THEIRS} || echo "$key" >> {THEIRS}; done'
)


def user_tasks(setup: MachineSetup, facts: Facts) -> Iterator[Task]:
    if not setup.ssh_keys:
        return
    folder = Directory(path=FOLDER, mode=0o700)
    yield folder
    if facts.package_manager is PackageManager.DNF:
        yield Command(
            name="SSH keys of operators",
            check=("sh", "-c", MISSING, "sh", *setup.ssh_keys),
            run=("sh", "-c", APPEND, "sh", *setup.ssh_keys),
            after=(folder.key,),
        )
    else:
        lines = "".join(f"{each}\n" for each in setup.ssh_keys)
        yield File(path=OURS, content=f"{HEAD}{lines}".encode(), mode=0o600)
