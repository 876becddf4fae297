"""Where Services are served now, asked of the API with the credentials of the user who ran `up`.

Asked at most once a second for each Service, also if the answer is an error; while no API server answers, the last
answer holds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.kube.services import Address, ServiceName, ask
from protokube.local.base import client_files
from protokube.local.base.paths import Paths

FRESH_SECONDS, ASK_SECONDS = 1.0, 3.0
Answer = Sequence[Address] | ProtokubeError


class Endpoints:
    """The last answers, and when each was given."""

    def __init__(self, paths: Paths, fresh: float = FRESH_SECONDS) -> None:
        self._paths, self.fresh = paths, fresh
        self._lock = threading.Lock()
        self._known: dict[ServiceName, tuple[float, Answer]] = {}

    def find(self, name: ServiceName) -> Sequence[Address]:
        """In a thread. Who asks at the same time waits for one answer; an API that is away costs its patience once."""
        with self._lock:
            at, known = self._known.get(name, (0.0, None))
            if known is None or time.monotonic() - at >= self.fresh:
                known = self._answer(name, known)
                self._known[name] = time.monotonic(), known
        if isinstance(known, ProtokubeError):
            raise known.with_traceback(None)  # it is raised again, and would grow
        return known

    def _answer(self, name: ServiceName, before: Answer | None) -> Answer:
        try:
            return self._ask(name)
        except TryLater as why:
            return why if before is None or isinstance(before, TryLater) else before
        except ProtokubeError as why:
            return why

    def _ask(self, name: ServiceName) -> Sequence[Address]:
        api = client_files.kube_api(self._paths, ASK_SECONDS)
        if api is None:
            raise Refused(f"{self._paths.cluster} has no Kubernetes", code="needs-kubernetes")
        try:
            return ask(api, name)
        finally:
            api.close()
