"""Load balancer on one machine: connect its API clients to an API server that is ready, never to a dead or frozen one.

`backends` decides and `status` reports; both are pure. `check` probes, `resolver` looks the name up and `relay` copies
bytes. `proxy` is the process. TLS passes through unchanged: the proxy has no key.
"""
