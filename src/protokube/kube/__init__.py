"""Clients of the Kubernetes API: objects as plain trees or bytes, over HTTPS."""
