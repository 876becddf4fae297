"""The Keyset document of kops: certificates and keys of one name, of which one pair is the primary."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import yaml

from protokube import fast_yaml

API_VERSION = "kops.k8s.io/v1alpha2"


def write_keyset(name: str, serial: str, certificate: bytes, key: bytes | None) -> bytes:
    """A keyset with one pair, the primary; without a key for readers that may not have it."""
    item = {"id": serial, "publicMaterial": b64encode(certificate).decode()}
    if key is not None:
        item["privateMaterial"] = b64encode(key).decode()
    spec = {"keys": [item], "primaryID": serial, "type": "Keypair"}
    document = {"apiVersion": API_VERSION, "kind": "Keyset", "metadata": {"name": name}, "spec": spec}
    return fast_yaml.dump(document).encode()


def read_keyset(text: bytes) -> tuple[bytes, bytes]:
    """The certificate and the key of the primary pair. Raises ValueError."""
    try:
        spec: Any = fast_yaml.load(text)["spec"]
        primary = spec.get("primaryID") or spec.get("primaryId")
        items = [each for each in spec["keys"] if str(each["id"]) == str(primary)]
        if len(items) != 1:
            raise ValueError(f"{len(items)} keys are called {primary!r}, which is the one in use")
        (item,) = items
        return b64decode(item["publicMaterial"], validate=True), b64decode(item["privateMaterial"], validate=True)
    except (KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise ValueError(f"this is not a keyset: {type(error).__name__}: {error}") from error
