"""Packages are installed by the real apt and dpkg, on roots that are thrown away, from a repository of tiny ones."""

from __future__ import annotations

import hashlib
import os
import random
import select
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clusters.machines import debs
from clusters.machines.chroot import Chroot
from clusters.machines.debs import ALL, conf, service
from clusters.machines.tasks import Running, descendants
from protokube.nodeup.values import Packages

POLICY = "usr/sbin/policy-rc.d"
HOLD_LOCK = """
import fcntl, sys
lock = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root() -> Iterator[Chroot]:
    """A root on which nothing of ours is installed; its apt has no lists yet."""
    made = Chroot()
    debs.publish(made.files / "repository")
    debs.configure(made.files)
    yield made
    made.close()


def install(root: Chroot, *names: str) -> Running:
    return root.start(Packages(names=names))


def state(root: Chroot, name: str) -> str:
    return root.run("sh", "-c", f"dpkg-query -W -f '${{Status}} ${{Version}}' {name} 2>&1 || true").strip()


def tree(root: Chroot) -> dict[str, str]:
    """Everything that was written to it, by path: mode, and what a file holds."""
    found = {}
    for folder, _, files in os.walk(root.written):
        for name in files:
            path = Path(folder, name)
            status = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
            target = str(path.readlink()) if path.is_symlink() else ""
            found[str(path.relative_to(root.written))] = f"{status.st_mode:o} {content}{target}"
    return found


def what_counts(root: Chroot) -> dict[str, str]:
    """The same without logs, caches and the times in them."""
    skipped = ("var/log", "var/cache", "var/lib/apt", "var/lib/dpkg/status-old", "repository", "tmp")
    return {path: told for path, told in tree(root).items() if not path.startswith(skipped)}


def test_packages_are_installed_with_what_they_need_and_held_and_no_service_starts(root: Chroot) -> None:
    running = install(root, "tiny-needs", "tiny-service")

    done = running.one()

    assert done.well, done
    assert "tiny-needs: not installed -> installed" in done.changes
    assert state(root, "tiny-needs") == "hold ok installed 1.0"
    assert state(root, "tiny-service") == "hold ok installed 1.0"
    assert state(root, "tiny-conf") == "install ok installed 1.0"  # nobody asked for it: it may be upgraded
    assert not (root.files / "service-was-start").exists()
    assert not (root.files / POLICY).exists()
    assert "updating the lists of packages" in running.said


def test_a_second_run_changes_nothing_at_all(root: Chroot) -> None:
    assert install(root, "tiny-needs").one().well
    before = tree(root)

    again = install(root, "tiny-needs")

    assert again.one().changes == []
    assert again.said == []
    assert tree(root) == before


def test_lists_that_know_the_package_are_not_updated(root: Chroot) -> None:
    root.run("apt-get", "update")

    running = install(root, "tiny-conf")

    assert running.one().well
    assert running.said == ["installing tiny-conf"]


def test_lists_that_name_files_which_are_gone_are_updated_once(root: Chroot) -> None:
    root.run("apt-get", "update")
    (root.files / "repository/tiny-conf_1.0_all.deb").unlink()
    debs.publish(root.files / "repository", [conf("1.1")])

    running = install(root, "tiny-conf")

    assert running.one().well
    assert running.said.count("updating the lists of packages") == 1
    assert state(root, "tiny-conf") == "hold ok installed 1.1"


def test_a_configuration_file_that_the_user_changed_is_kept(root: Chroot) -> None:
    assert install(root, "tiny-conf").one().well
    (root.files / "etc/tiny.conf").write_text("mine\n")
    debs.publish(root.files / "repository", [conf("1.0"), conf("2.0")])

    done = install(root, "tiny-conf=2.0").one()

    assert done.well, done
    assert done.changes == ["tiny-conf: 1.0 -> 2.0", "tiny-conf hold: no -> yes"]
    assert state(root, "tiny-conf") == "hold ok installed 2.0"
    assert (root.files / "etc/tiny.conf").read_text() == "mine\n"


def test_a_version_may_be_a_pattern_and_newer_ones_are_not_taken(root: Chroot) -> None:
    debs.publish(root.files / "repository", [conf("1.0-3"), conf("2.0")])

    assert install(root, "tiny-conf=1.0*").one().well

    assert state(root, "tiny-conf") == "hold ok installed 1.0-3"
    assert install(root, "tiny-conf").one().changes == []
    root.run("apt-get", "-y", "upgrade")
    assert state(root, "tiny-conf") == "hold ok installed 1.0-3"


def test_a_lock_of_somebody_else_is_waited_for_and_its_holder_named(root: Chroot) -> None:
    command = root.keeper.enter("chroot", str(root.path), "python3", "-c", HOLD_LOCK)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdin
        assert holder.stdout.readline() == "held\n"

        running = install(root, "tiny-conf")
        told = running.until_said("waiting for")
        assert state(root, "tiny-conf").startswith("dpkg-query: no packages found")
        holder.stdin.close()

        assert running.one().well
    assert told.startswith("waiting for python3 (pid ")


def test_an_install_whose_script_fails_is_refused_with_its_words_and_finished_by_the_next_run(root: Chroot) -> None:
    (root.files / "fail-in-postinst").touch()

    failed = install(root, "tiny-conf").one()

    assert failed.kind == "Refused"
    assert "tiny-conf" in failed.error
    assert "post-installation script subprocess returned error exit status 3" in failed.error
    assert not (root.files / POLICY).exists()
    (root.files / "fail-in-postinst").unlink()
    again = install(root, "tiny-conf")
    done = again.one()
    assert done.well, done
    assert done.changes[0] == "tiny-conf: half-configured -> installed"
    assert any("dpkg --configure -a" in each for each in again.said)


def test_what_another_install_left_half_configured_is_finished_first(root: Chroot) -> None:
    root.run("apt-get", "update")
    (root.files / "fail-in-postinst").touch()
    root.run("sh", "-c", "! apt-get -y install tiny-conf")
    (root.files / "fail-in-postinst").unlink()

    done = install(root, "tiny-service").one()

    assert done.well, done
    assert state(root, "tiny-conf") == "install ok installed 1.0"


def until_a_script_runs(root: Chroot, running: Running) -> None:
    deadline = time.monotonic() + 60
    while not list(root.files.glob("postinst-of-*")):
        assert running.process.poll() is None, "it ended before"
        assert time.monotonic() < deadline, "no script began"
        time.sleep(0.01)


def everything_below(running: Running) -> None:
    """As a power cut does, as far as processes go: none sees another one end, and none is left when this returns."""
    seen, handles = {running.process.pid}, list[int]()
    while new := [each for each in descendants(running.process.pid) if each not in seen]:
        seen.update(new)
        for pid in new:
            with suppress(ProcessLookupError):  # it has ended by itself
                handles.append(os.pidfd_open(pid))
                signal.pidfd_send_signal(handles[-1], signal.SIGSTOP)
    for handle in handles:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    for handle in handles:
        assert select.select([handle], [], [], 60)[0], "it does not end"
        os.close(handle)
    running.process.send_signal(signal.SIGCONT)  # nsenter stops when what it started does
    running.process.wait(60)
    running.close()


def test_after_a_kill_in_the_middle_of_a_script_the_next_run_ends_as_if_there_had_been_none(root: Chroot) -> None:
    (root.files / "wait-in-postinst").touch()
    running = install(root, "tiny-needs")
    until_a_script_runs(root, running)

    everything_below(running)

    assert (root.files / POLICY).exists()
    (root.files / "wait-in-postinst").unlink()
    done = install(root, "tiny-needs").one()
    assert done.well, done
    assert "policy-rc.d: left by an install that was cut off -> as it was before" in done.changes
    assert not (root.files / POLICY).exists()
    assert not (root.files / "service-was-start").exists()
    undisturbed = Chroot()
    try:
        debs.publish(undisturbed.files / "repository")
        debs.configure(undisturbed.files)
        assert install(undisturbed, "tiny-needs").one().well
        assert what_counts(root) == what_counts(undisturbed)
    finally:
        undisturbed.close()


def test_when_only_we_are_killed_the_install_that_goes_on_is_waited_for(root: Chroot) -> None:
    (root.files / "wait-in-postinst").touch()
    running = install(root, "tiny-service")
    until_a_script_runs(root, running)
    running.kill()

    again = install(root, "tiny-service")
    assert "apt-get (pid " in again.until_said("waiting for")
    (root.files / "wait-in-postinst").unlink()

    assert again.one().well
    assert not (root.files / "service-was-start").exists()


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_anywhere_again_and_again_is_finished_by_the_next_one(root: Chroot, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(3):
        running = install(root, "tiny-needs")
        while not any("installing" in each for each in running.said) and running.next():
            continue
        try:
            running.process.wait(chance.uniform(0, 0.35))  # a random instant, not a time to wait for something
            running.close()
        except subprocess.TimeoutExpired:
            everything_below(running)

    done = install(root, "tiny-needs").one()

    assert done.well, done.error
    assert install(root, "tiny-needs").one().changes == []
    assert state(root, "tiny-needs") == "hold ok installed 1.0"
    assert root.run("dpkg", "--audit") == ""
    assert not [each for each in (root.files / "usr/sbin").iterdir() if "policy-rc.d" in each.name]


def test_a_package_that_was_cut_off_while_unpacked_again_is_installed_again(root: Chroot) -> None:
    assert install(root, "tiny-needs").one().well
    database = root.files / "var/lib/dpkg/status"
    stanzas = database.read_text().split("\n\n")
    for index, stanza in enumerate(stanzas):
        if stanza.startswith("Package: tiny-conf\n"):
            stanzas[index] = stanza.replace("install ok installed", "install reinstreq half-installed")
        if stanza.startswith("Package: tiny-needs\n"):
            stanzas[index] = stanza.replace("hold ok installed", "install ok unpacked")
    database.write_text("\n\n".join(stanzas))

    done = install(root, "tiny-needs").one()

    assert done.well, done.error
    assert state(root, "tiny-conf") == "install ok installed 1.0"


@pytest.mark.parametrize("left_by_a_kill", [False, True])
def test_a_policy_of_the_user_stays_and_decides_for_all_installs_but_ours(root: Chroot, left_by_a_kill: bool) -> None:
    policy = root.files / POLICY
    policy.write_text('#!/bin/sh\necho "$@" >> /asked\nexit 101\n')
    policy.chmod(0o755)
    (root.files / "wait-in-postinst").touch()
    before = policy.stat().st_ino
    running = install(root, "tiny-conf")
    until_a_script_runs(root, running)

    if left_by_a_kill:
        everything_below(running)
        (root.files / "wait-in-postinst").unlink()
        root.run("dpkg", "--configure", "-a")
        root.run("apt-get", "-y", "install", "tiny-service")
        assert (root.files / "asked").read_text() == "tiny (start)\n"
        assert install(root, "tiny-conf").one().well
    else:
        (root.files / "wait-in-postinst").unlink()
        assert running.one().well

    assert policy.stat().st_ino == before
    assert [each.name for each in policy.parent.iterdir() if "policy" in each.name] == ["policy-rc.d"]


def test_a_file_that_a_kill_left_starts_services_of_other_installs_as_before(root: Chroot) -> None:
    (root.files / "wait-in-postinst").touch()
    running = install(root, "tiny-conf")
    until_a_script_runs(root, running)
    everything_below(running)
    (root.files / "wait-in-postinst").unlink()

    root.run("dpkg", "--configure", "-a")
    root.run("apt-get", "-y", "install", "tiny-service")

    assert (root.files / POLICY).exists()
    assert (root.files / "service-was-start").exists()


def test_a_package_that_nobody_has_is_named_with_the_distribution(root: Chroot) -> None:
    done = install(root, "tiny-conf", "no-such-thing").one()

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "debian 12 has no package no-such-thing, as its sources are configured"
    assert state(root, "tiny-conf").startswith("dpkg-query: no packages found")


def test_a_version_that_nobody_has_is_refused_too(root: Chroot) -> None:
    done = install(root, "tiny-conf=7.0").one()

    assert done.kind == "Refused"
    assert "Version '7.0' for 'tiny-conf' was not found" in done.error


def test_nothing_is_removed_for_it_and_what_would_be_is_named(root: Chroot) -> None:
    assert install(root, "tiny-conf").one().well
    root.run("apt-mark", "unhold", "tiny-conf")

    done = install(root, "tiny-rival").one()

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "installing would remove tiny-conf, so nothing was installed"
    assert state(root, "tiny-conf") == "install ok installed 1.0"


def test_nothing_is_downgraded(root: Chroot) -> None:
    debs.publish(root.files / "repository", [conf("1.0"), conf("2.0")])
    assert install(root, "tiny-conf=2.0").one().well

    done = install(root, "tiny-conf=1.0").one()

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "packages would be downgraded, so nothing was installed: tiny-conf"
    assert state(root, "tiny-conf").endswith("installed 2.0")
    assert install(root, "tiny-conf=2.0").one().well
    assert state(root, "tiny-conf") == "hold ok installed 2.0"


def test_a_package_that_the_user_holds_at_another_version_is_left_to_them(root: Chroot) -> None:
    root.run("sh", "-c", "apt-get update && apt-get -y install tiny-conf && apt-mark hold tiny-conf")
    debs.publish(root.files / "repository", [*ALL, conf("2.0")])

    done = install(root, "tiny-conf=2.0").one()

    assert done.kind == "Refused"
    assert done.error.splitlines()[0] == "tiny-conf is held at 1.0 by somebody else"
    assert install(root, "tiny-conf").one().changes == []


def test_what_depends_on_a_newer_version_of_a_package_on_hold_is_refused(root: Chroot) -> None:
    assert install(root, "tiny-service").one().well
    needs = debs.Deb(name="tiny-newer", control="Depends: tiny-service (>= 2.0)\n")
    debs.publish(root.files / "repository", [service("1.0"), service("2.0"), needs])

    done = install(root, "tiny-newer").one()

    assert done.kind == "Refused"
    assert "tiny-service" in done.error
    assert state(root, "tiny-service") == "hold ok installed 1.0"


def test_without_a_network_it_is_for_later(root: Chroot) -> None:
    sources = root.files / "etc/apt/sources.list"
    sources.write_text("deb [trusted=yes] http://127.0.0.1:9 stable main\n")
    (root.files / "etc/apt/apt.conf.d/99-tests").write_text('Acquire::Retries "0";\n')

    done = install(root, "tiny-conf").one()

    assert done.kind == "TryLater"
    assert done.error.startswith("the lists of packages cannot be fetched, and tiny-conf is in none that is here")
    assert "127.0.0.1:9" in done.error


def test_sources_that_cannot_be_read_are_refused_with_their_line(root: Chroot) -> None:
    (root.files / "etc/apt/sources.list").write_text("dep file:/repository ./\n")

    done = install(root, "tiny-conf").one()

    assert done.kind == "Refused"
    assert "/etc/apt/sources.list" in done.error


def test_a_read_only_root_is_refused(root: Chroot) -> None:
    root.run("apt-get", "update")
    root.keeper.run("mount", "--bind", f"{root.path}/var/lib/dpkg", f"{root.path}/var/lib/dpkg")
    root.keeper.run("mount", "-o", "remount,bind,ro", f"{root.path}/var/lib/dpkg")

    done = install(root, "tiny-conf").one()

    assert done.kind == "Refused"
    assert "read-only" in done.error.lower()


def test_a_disk_that_is_full_is_said(root: Chroot) -> None:
    root.run("mkdir", "-p", "/usr/share/tiny")
    root.keeper.run("mount", "-t", "tmpfs", "-o", "nr_inodes=1", "tmpfs", f"{root.path}/usr/share/tiny")

    done = install(root, "tiny-conf").one()

    assert done.kind == "Refused"
    assert "a disk is full" in done.error
    root.keeper.run("umount", f"{root.path}/usr/share/tiny")
    assert install(root, "tiny-conf").one().well


def test_what_would_be_installed_is_known_once_the_lists_were_fetched(root: Chroot) -> None:
    names = ["dpkg", "tiny-conf", "no-such-thing"]
    before = root.start(names=names)
    before.wait()
    after = root.start(names=names, update=True)
    after.wait()

    assert [name for name, _ in before.facts["available"]] == ["dpkg"]  # type: ignore[attr-defined]
    assert "lists before: False, not fetched: '', after: True" in after.said
    assert after.facts["available"][1] == ["tiny-conf", "1.0"]  # type: ignore[index]


def test_a_root_that_is_read_only_is_refused_before_anything_is_done(root: Chroot) -> None:
    root.keeper.run("mount", "--bind", f"{root.path}/etc", f"{root.path}/etc")
    root.keeper.run("mount", "-o", "remount,bind,ro", f"{root.path}/etc")
    running = root.start()
    running.wait()

    assert running.said[0].splitlines()[0] == f"{root.path} is read-only"
