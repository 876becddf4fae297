"""For all tests alike."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import settings

from builders.examples import FAST
from leaks import pytest_runtest_setup, pytest_runtest_teardown  # noqa: F401  hooks
from protokube.host.mounts import mounts
from protokube.store import memory

# How long one example takes says something about the machine and its other work, and nothing about the code.
settings.register_profile("any machine", deadline=None)
settings.register_profile(FAST, settings.get_profile("any machine"), max_examples=5)
settings.load_profile("any machine")

# Nothing that a test makes may send anything outside; fakes.outside_world has an outside of its own.
os.environ["PROTOKUBE_ISOLATED"] = "1"
# Nothing that a test brings up gets into the kubeconfig of whoever runs it; `own_kubeconfig` sees to it.
os.environ["PROTOKUBE_KUBECONFIG"] = "0"

# A shell has those in the background ignore Ctrl-C, and whatever they start inherits that: commands that a test starts,
# and interrupts, would go on for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Coverage is measured in the workers of a run, and not in the programs that tests start: an agent, a command or a pod
# that is measured takes twice its time, and what it does is asked for by unit tests as well.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


OWN_KUBECONFIG = Path(os.environ.get("HOME", "/nonexistent")) / ".kube" / "config"


@pytest.fixture(scope="session", autouse=True)
def own_kubeconfig() -> Iterator[None]:
    """Fail if anything changed the kubeconfig of whoever runs the tests: it names clusters that people need."""
    before = _identity(OWN_KUBECONFIG)
    yield
    assert _identity(OWN_KUBECONFIG) == before, f"tests changed {OWN_KUBECONFIG}"


def _identity(file: Path) -> tuple[int, int, int] | None:
    """Another inode, size or time of change is another file, whoever replaced it."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


@pytest.fixture(autouse=True)
def empty_memory_stores() -> None:
    """What an earlier test of this process wrote under the same name decides nothing."""
    for shared in memory._SHARED.values():
        shared.files.clear()
    memory._SHARED.clear()


@pytest.fixture(autouse=True)
def removed_folders(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove the folder of a test that passed, after all else: those of one whole run are 20 GB, and filled a disk."""
    failed = request.session.testsfailed
    yield
    folder = request.node.funcargs.get("tmp_path")
    if isinstance(folder, Path) and request.session.testsfailed == failed and not _mounted_below(folder):
        shutil.rmtree(folder, ignore_errors=True)


def _mounted_below(folder: Path) -> bool:
    """Removing it would remove what is mounted there, too."""
    return any(each.point.is_relative_to(folder) for each in mounts())


@pytest.fixture(scope="module")
def unmeasured() -> Iterator[None]:
    """For tests that go the same ways thousands of times: to count each of them would take longer than to go."""
    trace = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(trace)


TESTS = Path(__file__).parent
LONG = [
    f"test_{name}.py"
    for name in (
        "wiped", "failover", "faults", "etcd_certificates", "dns_faults", "rollout", "full_etcd", "etcd_fatal_messages",
        "older_copies", "split_brain",
    )
]  # fmt: skip
"""They begin first, in this order: a long file that begins last is waited for by everybody."""
TIERS = ("scenarios", "conformance", "process", "unit", "golden")
LIMITS = {"unit": 120, "golden": 120, "process": 300, "scenarios": 600, "conformance": 600, "host": 600, "e2e": 1800}
"""Seconds for one test, by tier: far more than any takes on a busy machine. A test that hangs fails and shows where."""
LANES = [
    f"test_{name}.py"
    for name in (
        "planted_bugs", "conformance", "worker", "first_up", "copies_in_the_window", "kubelet", "chaos",
        "cluster_objects", "returning_disks", "services", "removed_members", "outside", "control_plane", "broken_disks",
        "load_image", "renewal", "least_rights",
    )
]  # fmt: skip
"""The long ones of the end-to-end tests, those of disks and those of Kubernetes by turns: two files run at a time."""


SPACE = {"host": 8, "e2e": 8}
"""GB of disk for one run of a tier: the databases of etcd that exist at one time."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """A disk that gets full fails hundreds of tests, each with another reason."""
    need = max((SPACE.get(_tier(Path(each).absolute()), 0) for each in session.config.args), default=0)
    free = shutil.disk_usage(tempfile.gettempdir()).free / 1e9
    if free < need:
        text = (
            f"{tempfile.gettempdir()} has {free:.1f} GB free, these tests need {need} GB: remove what earlier runs left"
        )
        pytest.exit(f"{text} there (pytest-of-*, pkc-*), or set TMPDIR to a larger disk", returncode=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that mostly wait, for hosts and servers, and files that only compute take turns, so that both are busy."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    for path, of_file in files.items():
        if limit := LIMITS.get(_tier(path)):
            for item in of_file:
                item.add_marker(pytest.mark.timeout(limit))
    hosts = [path for path in files if _tier(path) == "host"]
    first = sorted((path for path in hosts if path.name in LONG), key=lambda path: LONG.index(path.name))
    waiting = [path for path in hosts if path not in first]
    computing = sorted((path for path in files if path not in hosts), key=lambda path: (_turn(path), _lane(path)))
    share = -(-len(computing) // max(len(waiting), 1))
    turns = [computing[at : at + share] for at in range(0, len(computing), max(share, 1))]
    order = [*first]
    for one, some in zip_longest(waiting, turns, fillvalue=None):
        order += [*([one] if isinstance(one, Path) else []), *(some if isinstance(some, list) else [])]
    items[:] = [item for path in order for item in files[path]]


def pytest_collection_finish() -> None:
    """Ten thousand collected tests are never garbage: searching them again and again took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _tier(path: Path) -> str:
    """The folder of tests/ that a file is in."""
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""


def _lane(path: Path) -> int:
    return LANES.index(path.name) if _tier(path) == "e2e" and path.name in LANES else len(LANES)


def _turn(path: Path) -> int:
    return TIERS.index(_tier(path)) if _tier(path) in TIERS else len(TIERS)
