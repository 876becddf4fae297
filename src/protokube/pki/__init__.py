"""Authorities and certificates: what there is, for whom, until when."""
