"""For all tests alike."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

# Coverage is measured in the workers of a run, and not in the programs that tests start: an agent, a command or a pod
# that is measured takes twice its time, and what it does is asked for by unit tests as well.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


@pytest.fixture(scope="module")
def unmeasured() -> Iterator[None]:
    """For tests that go the same ways thousands of times: to count each of them would take longer than to go."""
    trace = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(trace)
