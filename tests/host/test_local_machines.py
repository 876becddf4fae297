"""Hosts on machines unlike this one: shared mounts, as systemd has them, and file systems below file systems.

Each test is a program that runs in a mount namespace of its own, where it arranges the mounts it wants to have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

BEGIN = """
import json, os, subprocess, sys
from pathlib import Path
from clusters.hosts import a_cloud, eventually
from protokube.local.host import hosts

def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)

def table(pid="self"):
    return Path(f"/proc/{pid}/mountinfo").read_text()

def mounts():
    # by their numbers: the rest of a line changes, too, when others unlink or break what was mounted before us
    return {line.split()[0]: line.split()[4] for line in table().splitlines()}

def changed(before):
    # where others remove the folder or the namespace on which something of theirs was mounted, it goes from here, too
    now = mounts()
    return sorted(now[each] for each in now.keys() - before.keys()) + sorted(
        before[each] for each in before.keys() - now.keys() if not before[each].startswith(("/tmp/", "/run/"))
    )

seen = {}
"""
END = "\nprint(json.dumps(seen))\n"


def on_a_machine(program: str) -> dict[str, Any]:
    """What the program has seen, in a mount namespace that nobody else is in."""
    tests = str(Path(__file__).resolve().parents[1])
    ran = subprocess.run(
        ["unshare", "--mount", "--propagation=private", sys.executable, "-c", BEGIN + program + END],
        env={**os.environ, "PYTHONPATH": tests},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_nothing_leaks_where_mounts_are_shared() -> None:
    seen = on_a_machine("""
mount("--make-rshared", "/")
with a_cloud() as cloud:
    before = mounts()
    host = cloud.start("shared", 11)
    seen["while it runs"] = changed(before)
    host.run("sh", "-ec", "mkdir /mnt/inside; mount -t tmpfs inside /mnt/inside")
    seen["after a mount inside"] = changed(before)
    seen["inside"] = "/mnt/inside" in table(host.pid)
    hosts.kill(host.pid)
    seen["after its end"] = changed(before)
""")
    assert seen == {"while it runs": [], "after a mount inside": [], "inside": True, "after its end": []}


def test_what_the_user_unmounts_goes_from_hosts_too_where_mounts_are_shared() -> None:
    seen = on_a_machine("""
mount("--make-rshared", "/")
mount("-t", "tmpfs", "below", "/opt")
Path("/opt/disk").mkdir()
mount("-t", "tmpfs", "deeper", "/opt/disk")
Path("/opt/disk/note").write_text("hello")
with a_cloud() as cloud:
    host = cloud.start("observer", 11)
    seen["before"] = host.run("cat", "/opt/disk/note").stdout
    subprocess.run(["umount", "/opt/disk"], check=True)
    seen["after"] = " /opt/disk " in table(host.pid)
""")
    assert seen == {"before": "hello", "after": False}


def test_file_systems_below_file_systems_are_seen_and_cannot_be_written() -> None:
    seen = on_a_machine("""
mount("-t", "tmpfs", "below", "/opt")
Path("/opt/a").mkdir()
mount("-t", "tmpfs", "deeper", "/opt/a")
Path("/opt/a/program").write_text("#!/bin/sh\\necho ran\\n")
Path("/opt/a/program").chmod(0o755)
with a_cloud() as cloud:
    host = cloud.start("deep", 11, path="/opt/a:/usr/bin:/bin", units={"program.service": ["program"]})
    log = host.outside("/var/log/program.service.log")
    seen["ran"] = eventually(lambda: log.read_text()).splitlines()[0]
    seen["refused"] = [
        "Read-only" in host.run("touch", f"{folder}/intruder", check=False).stderr for folder in ("/opt", "/opt/a")
    ]
    Path("/opt/a/mine").touch()  # for the user nothing has changed
""")
    assert seen == {"ran": "ran", "refused": [True, True]}


def test_a_state_folder_may_lie_anywhere() -> None:
    """Below a folder that hosts are shown, nothing of the state is seen in any of them."""
    seen = on_a_machine("""
mount("-t", "tmpfs", "state", "/opt")
with a_cloud("/opt") as cloud:
    one, two = cloud.start("one", 11), cloud.start("two", 12)
    seen["root"] = str(cloud.root).startswith("/opt/")
    one.run("sh", "-ec", "mkdir /mnt/disk; mount -t tmpfs disk /mnt/disk; echo secret > /mnt/disk/secret")
    two.run("sh", "-c", "echo own > /var/own")
    seen["own"] = two.outside("/var/own").read_text()
    seen["sees of the state"] = two.run("ls", str(cloud.root)).stdout
    seen["sees the other's disk"] = two.run("ls", str(one.outside("/mnt/disk")), check=False).returncode == 0
    points = [line.split()[4] for line in table(two.pid).splitlines()]
    seen["mounted twice"] = len(points) != len(set(points))
""")
    assert seen == {
        "root": True,
        "own": "own\n",
        "sees of the state": "",
        "sees the other's disk": False,
        "mounted twice": False,
    }


def test_links_and_files_in_the_root_of_the_machine_are_there() -> None:
    seen = on_a_machine("""
with a_cloud() as cloud:
    host = cloud.start("rooted", 11)
    outside = {entry.name: entry for entry in Path("/").iterdir()}
    inside = Path(f"/proc/{host.pid}/root")
    missing = [name for name in outside if not os.path.lexists(inside / name)]
    seen["missing"] = sorted(set(missing) - {"lost+found"})
    links = [name for name, entry in outside.items() if entry.is_symlink()]
    seen["links"] = all((inside / name).readlink() == outside[name].readlink() for name in links)
    seen["bin"] = host.run("/bin/echo", "works").stdout
""")
    assert seen == {"missing": [], "links": True, "bin": "works\n"}
