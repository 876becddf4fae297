"""A bucket of Google Cloud Storage, or of an emulator (STORAGE_EMULATOR_HOST, as gcsfs reads it).

gcsfs provides credentials, the endpoint and the connection; the three requests below are our own. gcsfs supports
only one condition (create) and retries six times, so a write with a lost reply would look like that of
another writer. Our POST is sent once: aiohttp retries only methods that it considers idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from protokube.errors import ProtokubeError
from protokube.store import Version
from protokube.store.faults import Kind, fault, need
from protokube.store.gs_request import Answer, caught, connect, kind_of, request, time_of
from protokube.store.lazy_connection import LazyConnection
from protokube.store.objects import ABSENT, Content
from protokube.store.patience import PATIENT, Patience
from protokube.store.wire import kind_of_status, words

HINTS: Mapping[Kind, str] = {
    Kind.AWAY: "check the network, and STORAGE_EMULATOR_HOST if it is set; then run it again",
    Kind.DENIED: "run `gcloud auth application-default login` or set GOOGLE_APPLICATION_CREDENTIALS; "
    "the store needs the role storage.objectUser on the bucket",
    Kind.NO_BUCKET: "create it with `gcloud storage buckets create`, or correct the store's URL",
    Kind.REJECTED: "correct the bucket's name or STORAGE_EMULATOR_HOST",
}
NOT_GCS = "a reply without the fields that GCS always sends: the server is not GCS"


class GsBucket:
    """Implements Bucket with GCS's generation numbers."""

    def __init__(self, name: str, patience: Patience = PATIENT) -> None:
        self.url = f"gs://{name}"
        self._name = quote(name, safe="")
        self._patience = patience
        self._connection = LazyConnection(lambda: connect(patience))
        need("gcsfs", "gs", self.url)

    def get(self, key: str) -> Content | None:
        doing = f"read {key}"
        answer = self._ask(doing, "GET", f"storage/v1/b/{self._name}/o/{quote(key, safe='')}", {"alt": "media"})
        if answer.status == 404 and "bucket does not exist" not in answer.words:
            return None
        self._check(answer, doing)
        generation = self._generation(answer.headers.get("x-goog-generation"), doing)
        return Content(answer.body, generation, time_of(answer.headers.get("Last-Modified")))

    def keys(self, prefix: str) -> Iterator[str]:
        doing = f"list {prefix or 'everything'}"
        page = {"prefix": prefix, "fields": "items(name),nextPageToken"}
        while True:
            answer = self._ask(doing, "GET", f"storage/v1/b/{self._name}/o", page)
            self._check(answer, doing)
            if (listed := answer.json()) is None:
                raise self._fault(Kind.BROKEN, doing, NOT_GCS, guarded=False)
            yield from (item["name"] for item in listed.get("items", ()))
            if not (token := listed.get("nextPageToken")):
                return
            page["pageToken"] = token

    def write(self, key: str, data: bytes, only_if: Version | None) -> Version | None:
        doing, guarded = f"write {key}", only_if is not None
        parameters = {"uploadType": "media", "name": key}
        if only_if is not None:
            parameters["ifGenerationMatch"] = "0" if only_if == ABSENT else only_if
        answer = self._ask(doing, "POST", f"upload/storage/v1/b/{self._name}/o", parameters, data, guarded=guarded)
        if guarded and answer.status == 412:
            return None
        self._check(answer, doing, guarded=guarded)
        return self._generation((answer.json() or {}).get("generation"), doing, guarded=guarded)

    def close(self) -> None:
        files = self._connection.drop()
        if files is not None and files.session is not None:
            from fsspec.asyn import sync

            sync(files.loop, files.session.close, timeout=self._patience.connect)

    def _ask(
        self,
        doing: str,
        method: str,
        place: str,
        parameters: Mapping[str, str],
        data: bytes | None = None,
        *,
        guarded: bool = False,
    ) -> Answer:
        from fsspec.asyn import sync

        limit = self._patience.total if data is None else self._patience.to_send(data)
        try:
            files = self._connection.get()
            answer: Answer = sync(files.loop, request, files, method, place, parameters, data, timeout=limit)
        except caught() as error:
            raise self._fault(kind_of(error), doing, words(error), guarded=guarded) from error
        return answer

    def _check(self, answer: Answer, doing: str, *, guarded: bool = False) -> None:
        if answer.status >= 300:
            kind = Kind.NO_BUCKET if answer.status == 404 else kind_of_status(answer.status)
            raise self._fault(kind, doing, answer.words, guarded=guarded)

    def _generation(self, generation: str | None, doing: str, *, guarded: bool = False) -> Version:
        if not generation:
            raise self._fault(Kind.BROKEN, doing, NOT_GCS, guarded=guarded)
        return Version(generation)

    def _fault(self, kind: Kind, doing: str, saw: str, *, guarded: bool) -> ProtokubeError:
        return fault(kind, doing=doing, url=self.url, saw=saw, hints=HINTS, guarded=guarded)
