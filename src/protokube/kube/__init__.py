"""The Kubernetes API, as far as a master's agent needs it: objects as plain trees, over HTTPS with a certificate."""
