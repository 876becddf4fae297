"""Images that a person brings to a local cluster: judged, kept for hosts to come, imported where hosts run.

Not here: images that are made here (`local.image`).
"""
