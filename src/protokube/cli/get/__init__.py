"""`protokube get`: configurations from a store; Kubernetes, etcd and CoreDNS into the cache; images.

Not here: how programs are downloaded and built (`binaries`).
"""
