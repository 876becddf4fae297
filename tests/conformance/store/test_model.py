"""Any sequence of operations on a store, compared with a dictionary."""

from __future__ import annotations

import shutil
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from protokube.errors import Refused
from protokube.store import AlreadyThere, Changed, NotThere, Store, Version
from protokube.store.file import FileStore
from protokube.store.memory import MemoryStore
from protokube.store.open import open_store

NAMES = ("a", "b", "config", "pki")
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
CONTENT = st.binary(max_size=8)
BRIEF = settings(max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
_NUMBERS = count()


class StoreModel(RuleBasedStateMachine):
    """The model knows content and versions; folders are whatever the paths imply."""

    seen = Bundle("seen")

    def __init__(self) -> None:
        super().__init__()
        self.store = self.open()
        self.model: dict[str, bytes] = {}

    def open(self) -> Store:
        raise NotImplementedError

    def blocked(self, path: str) -> bool:
        """Whether the path would be a file and a folder at once."""
        return path not in self.model and any(
            other.startswith(path + "/") or path.startswith(other + "/") for other in self.model
        )

    @rule(target=seen, path=PATHS, data=CONTENT)
    def create(self, path: str, data: bytes) -> tuple[str, bytes, Version]:
        if self.blocked(path):
            with pytest.raises(Refused, match="either a file or a folder"):
                self.store.create(path, data)
            return path, data, Version("never")
        if path in self.model:
            with pytest.raises(AlreadyThere):
                self.store.create(path, data)
            return path, self.model[path], self.store.read(path).version
        self.model[path] = data
        return path, data, self.store.create(path, data)

    @rule(target=seen, was=consumes(seen), data=CONTENT)
    def replace(self, was: tuple[str, bytes, Version], data: bytes) -> tuple[str, bytes, Version]:
        path, content, version = was
        if path in self.model and self.store.read(path).version == version:
            assert self.model[path] == content, "equal versions must mean equal content"
            self.model[path] = data
            return path, data, self.store.replace(path, data, version)
        with pytest.raises(Changed):
            self.store.replace(path, data, version)
        return path, content, version

    @rule(path=PATHS, data=CONTENT)
    def put(self, path: str, data: bytes) -> None:
        if self.blocked(path):
            with pytest.raises(Refused, match="either a file or a folder"):
                self.store.put(path, data)
            return
        assert self.store.put(path, data) == (self.model.get(path) != data)
        self.model[path] = data

    @rule(path=PATHS)
    def read(self, path: str) -> None:
        if path in self.model:
            assert self.store.read(path).data == self.model[path]
        else:
            with pytest.raises(NotThere):
                self.store.read(path)

    @rule(under=PATHS)
    def list_folder(self, under: str) -> None:
        assert self.store.list_paths(under) == tuple(sorted(p for p in self.model if p.startswith(under + "/")))

    @rule()
    def open_again(self) -> None:
        self.store = open_store(self.store.url)

    @invariant()
    def the_list_is_the_model(self) -> None:
        assert self.store.list_paths() == tuple(sorted(self.model))


class MemoryModel(StoreModel):
    def open(self) -> Store:
        return MemoryStore(f"model-{next(_NUMBERS)}", "some/prefix")


class FileModel(StoreModel):
    def open(self) -> Store:
        self.folder = tempfile.mkdtemp()
        return FileStore(Path(self.folder, "root"))

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


TestMemoryModel = MemoryModel.TestCase
TestMemoryModel.settings = BRIEF
TestFileModel = FileModel.TestCase
TestFileModel.settings = BRIEF
