"""The metadata services of EC2 and GCE, and private buckets beside them, on loopback.

The bucket believes a signature only if botocore, which is not ours, makes the same one of the same request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

KEYS = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG", "Token": "session/token+="}
METADATA_TOKEN, GCE_TOKEN, REGION = "imds-token", "gce-token", "eu-west-1"


@dataclass(slots=True)
class Cloud:
    """What is in the buckets, and what was refused."""

    objects: dict[str, bytes] = field(default_factory=dict)
    """By `/bucket/key`."""
    refused: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """By which clients find it in place of the real ones."""
        return {
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url,
            "AWS_ENDPOINT_URL_S3": self.url,
            "GCE_METADATA_HOST": self.url.removeprefix("http://"),
            "STORAGE_EMULATOR_HOST": self.url,
        }


def signature(url: str, headers: dict[str, str]) -> str:
    """As botocore makes it, at the time that the request names."""
    kept = {name: headers[name] for name in ("x-amz-content-sha256",)}
    request = AWSRequest(method="GET", url=url, headers=kept)
    signer = S3SigV4Auth(Credentials(KEYS["AccessKeyId"], KEYS["SecretAccessKey"], KEYS["Token"]), "s3", REGION)
    request.context["timestamp"] = headers["x-amz-date"]
    request.headers["X-Amz-Date"] = headers["x-amz-date"]
    request.headers["X-Amz-Security-Token"] = KEYS["Token"]
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


class Handler(BaseHTTPRequestHandler):
    cloud: Cloud

    def do_PUT(self) -> None:
        good = self.path == "/latest/api/token" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self.answer(METADATA_TOKEN.encode() if good else None)

    def do_GET(self) -> None:
        if self.path.startswith("/latest/meta-data/"):
            self.ec2()
        elif self.path.startswith("/computeMetadata/"):
            good = self.headers.get("Metadata-Flavor") == "Google"
            self.answer(json.dumps({"access_token": GCE_TOKEN}).encode() if good else None)
        elif self.headers.get("Authorization") == f"Bearer {GCE_TOKEN}" or self.is_signed():
            self.answer(self.cloud.objects.get(self.path))
        else:
            self.cloud.refused.append(self.path)
            self.answer(None, 403)

    def ec2(self) -> None:
        place = self.path.removeprefix("/latest/meta-data/")
        texts = {
            "placement/region": REGION,
            "iam/security-credentials/": "masters",
            "iam/security-credentials/masters": json.dumps({"Code": "Success", **KEYS}),
        }
        good = self.headers.get("X-aws-ec2-metadata-token") == METADATA_TOKEN
        self.answer(texts[place].encode() if good and place in texts else None, 401)

    def is_signed(self) -> bool:
        headers = {name.lower(): value for name, value in self.headers.items()}
        given = headers.get("authorization", "")
        scope = f"{KEYS['AccessKeyId']}/{headers.get('x-amz-date', '')[:8]}/{REGION}/s3/aws4_request"
        if f"Credential={scope}," not in given or headers.get("x-amz-security-token") != KEYS["Token"]:
            return False
        return given.endswith(f"Signature={signature(f'{self.cloud.url}{self.path}', headers)}")

    def answer(self, data: bytes | None, otherwise: int = 404) -> None:
        self.send_response(200 if data is not None else otherwise)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *_: Any) -> None:
        """Tests look at what arrived."""


@contextmanager
def serving(cloud: Cloud) -> Iterator[Cloud]:
    handler = type("Bound", (Handler,), {"cloud": cloud})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    cloud.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield cloud
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
