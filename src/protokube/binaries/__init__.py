"""Binaries of Kubernetes, etcd and CoreDNS: find them on this machine, or download or build them atomically."""
