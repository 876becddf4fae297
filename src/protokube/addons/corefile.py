"""The Corefile of CoreDNS, from the `clusterDNS` configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_AT_ONCE = 1000
"""Concurrent upstream queries: bounds memory while an upstream server does not answer."""


def corefile(dns: Mapping[str, Any]) -> str:
    if own := dns.get("externalCoreFile"):
        return str(own)
    servers = [_servers(domain, addresses) for domain, addresses in sorted((dns.get("stubDomains") or {}).items())]
    return "\n".join([_main(dns), *servers])


def _main(dns: Mapping[str, Any]) -> str:
    upstream = " ".join(dns.get("upstreamNameservers") or ["/etc/resolv.conf"])
    most = dns.get("cacheMaxConcurrent") or MOST_AT_ONCE
    return f""".:53 {{
    errors
    health {{
        lameduck 5s
    }}
    ready
    kubernetes {dns["domain"]} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    prometheus :9153
    forward . {upstream} {{
        max_concurrent {most}
    }}
    {_cache(dns)}
    loop
    reload
    loadbalance
}}
"""


def _cache(dns: Mapping[str, Any]) -> str:
    if size := dns.get("cacheMaxSize"):
        return f"cache 30 {{\n        success {size}\n        denial {size}\n    }}"
    return "cache 30"


def _servers(domain: str, addresses: list[str]) -> str:
    return f"""{domain}:53 {{
    errors
    cache 30
    forward . {" ".join(addresses)}
}}
"""
