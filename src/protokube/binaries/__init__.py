"""Kubernetes' own programs: find them on this machine, or get them, whole or not at all."""
