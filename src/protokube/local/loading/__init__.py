"""Images that a person brings to a local cluster: read and checked, kept for hosts to come, imported where hosts run."""
