"""protokube: a Kubernetes control plane that nobody has to nurse."""

__version__ = "0.1.0"
