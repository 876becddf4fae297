"""What a server of a real cluster shows to whoever connects."""

from __future__ import annotations

import socket
import ssl

from cryptography import x509

from clusters.real import RealCluster
from protokube.local.host import network


def served(cluster: RealCluster, address: str, port: int) -> x509.Certificate:
    """The certificate of a server, as it is now."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with network.enter(network.switch_path(cluster.paths.switch)):
        plain = socket.socket()
    plain.settimeout(10)
    try:
        plain.connect((address, port))
        with context.wrap_socket(plain) as secure:
            shown = secure.getpeercert(binary_form=True)
    finally:
        plain.close()
    assert shown is not None
    return x509.load_der_x509_certificate(shown)
