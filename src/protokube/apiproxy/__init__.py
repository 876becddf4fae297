"""Clients of the API on one machine, kept away from API servers that are dead, frozen or not ready.

`backends` and `status` decide and tell, and are pure; `check`, `resolver` and `carry` each do one thing at the edge;
`proxy` is the process. TLS goes through untouched: nothing here has a key.
"""
