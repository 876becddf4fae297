"""The official conformance suite of Kubernetes against a local cluster: built, given its images, run, judged."""
