"""Every writable backend, each against its far side on loopback."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fsspec.asyn import get_loop

from conformance.store.bad_server import BadServer
from conformance.store.crew import Crew
from conformance.store.fake_gcs import PAGE, FakeGcs
from conformance.store.moto_s3 import ENVIRONMENT, MotoS3
from conformance.store.remote import CALM, Open, Serve
from protokube.store import Store
from protokube.store.gs import GsBucket
from protokube.store.objects import Bucket, ObjectStore
from protokube.store.open import open_store
from protokube.store.patience import Patience
from protokube.store.s3 import S3Bucket

WRITABLE = ("memory", "file", "s3", "gs")
SHARED = ("file", "s3", "gs")
"""What more than one process can see."""

_NUMBERS = itertools.count(1)

get_loop()  # one for the whole process, whoever asks for it first


@pytest.fixture(autouse=True)
def calm_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, account or endpoint of the machine the tests run on."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "STORAGE_EMULATOR")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def moto() -> Iterator[MotoS3]:
    with pytest.MonkeyPatch.context() as settings, MotoS3("bucket") as server:
        settings.setenv("MOTO_S3_DEFAULT_MAX_KEYS", str(PAGE))
        yield server


@pytest.fixture(scope="module")
def gcs() -> Iterator[FakeGcs]:
    with FakeGcs("bucket") as server:
        yield server


@dataclass(frozen=True)
class Place:
    """An empty place for a store, and what a process needs to reach it."""

    url: str
    environment: dict[str, str]


def make_place(kind: str, request: pytest.FixtureRequest) -> Place:
    number = next(_NUMBERS)
    match kind:
        case "memory":
            return Place(f"memory://place-{number}", {})
        case "file":
            folder: Path = request.getfixturevalue("tmp_path_factory").mktemp("store")
            return Place((folder / "root").as_uri(), {})
        case "s3":
            environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": request.getfixturevalue("moto").url}
            return Place(f"s3://bucket/place-{number}", environment)
        case _:
            environment = {"STORAGE_EMULATOR_HOST": request.getfixturevalue("gcs").url}
            return Place(f"gs://bucket/place-{number}", environment)


@pytest.fixture(params=WRITABLE)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    found = make_place(request.param, request)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture(scope="module")
def connections() -> Iterator[dict[tuple[str, str], Bucket]]:
    """Buckets that stay connected from test to test: setting a client up takes longer than most tests."""
    made: dict[tuple[str, str], Bucket] = {}
    yield made
    for bucket in made.values():
        bucket.close()


def opened(place: Place, who: str, connections: dict[tuple[str, str], Bucket]) -> Store:
    scheme, _, rest = place.url.partition("://")
    if scheme not in ("s3", "gs"):
        return open_store(place.url)
    name, _, prefix = rest.partition("/")
    if (scheme, who) not in connections:
        connections[scheme, who] = S3Bucket(name) if scheme == "s3" else GsBucket(name)
    return ObjectStore(connections[scheme, who], prefix)


@pytest.fixture
def store(place: Place, connections: dict[tuple[str, str], Bucket]) -> Store:
    return opened(place, "first", connections)


@pytest.fixture
def again(place: Place, connections: dict[tuple[str, str], Bucket]) -> Store:
    """A second store at the same place with a connection of its own, as another process would have."""
    return opened(place, "second", connections)


@pytest.fixture(scope="module", params=SHARED)
def crew(request: pytest.FixtureRequest) -> Iterator[Crew]:
    """Processes that share one store."""
    found = make_place(request.param, request)
    with Crew(found.url, found.environment, size=4) as crew:
        yield crew


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens stores, and closes them when the test is over."""
    with ExitStack() as stack:

        def opened(kind: str, url: str, patience: Patience = CALM) -> Store:
            match kind:
                case "s3":
                    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
                    store = open_store("s3://bucket/prefix", patience)
                case "gs":
                    monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
                    store = open_store("gs://bucket/prefix", patience)
                case _:
                    store = open_store(url, patience)
            stack.callback(store.close)
            return store

        yield opened


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that misbehave, and stops them when the test is over."""
    with ExitStack() as stack:
        yield lambda manners: stack.enter_context(BadServer(manners))
