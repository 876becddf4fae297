"""Stands for an API server: ready or not, one answer at a time, or a watch that never ends.

Run inside a host with its own name, a certificate and a key. SIGUSR1: from now on it is not ready.
"""

from __future__ import annotations

import http.server
import signal
import ssl
import sys
import time
from typing import Any


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status = 401  # nobody has a key here

    def do_GET(self) -> None:
        if self.path == "/watch":
            self.stream(f"{sys.argv[1]}\n".encode(), 0.05)
        elif self.path == "/flood":
            self.stream(b"x" * 65536, 0)
        else:
            self.send_response(Handler.status if self.path == "/readyz" else 200)
            self.send_header("Content-Length", str(len(sys.argv[1])))
            self.end_headers()
            self.wfile.write(sys.argv[1].encode())

    def stream(self, part: bytes, pause: float) -> None:
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(part)
            time.sleep(pause)

    def log_message(self, *_: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that left is no news."""


def unready(*_: Any) -> None:
    Handler.status = 500


def main() -> None:
    signal.signal(signal.SIGUSR1, unready)
    server = Server(("0.0.0.0", 443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main()
