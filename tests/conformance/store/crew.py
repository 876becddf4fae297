"""Some processes that work on one store at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

WORKER = Path(__file__).with_name("worker.py")


class Worker:
    """One process; see worker.py for what it can do."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def tell(self, do: str, path: str, text: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, "path": path, "text": text}) + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the worker ended with {self.process.wait()}"
        return str(json.loads(line))

    def dismiss(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()


class Crew:
    """Several workers on one store."""

    def __init__(self, url: str, environment: Mapping[str, str], size: int) -> None:
        self.url = url
        self.environment = dict(environment)
        self.workers = [Worker(url, environment) for _ in range(size)]

    def __enter__(self) -> Self:
        for worker in self.workers:
            assert worker.hear() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.dismiss()

    def all_at_once(self, do: str, path: str, text: str = "") -> Sequence[str]:
        """Give everybody the same order, then collect the answers."""
        for worker in self.workers:
            worker.tell(do, path, text)
        return [worker.hear() for worker in self.workers]
