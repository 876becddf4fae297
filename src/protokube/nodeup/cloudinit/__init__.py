"""The tasks of a machine as a document for cloud-init: its stages, and the script for what fits into none. Pure."""
