"""Images that a person brings to a local cluster: judged, kept for hosts to come, imported where hosts run."""
