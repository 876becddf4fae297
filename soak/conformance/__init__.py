"""Build and run the official conformance suite of Kubernetes on a local cluster, and evaluate the results."""
