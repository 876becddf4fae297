"""The settings of each Kubernetes component, each with its flag and its entry in the component's own file.

A setting that is not set is left to the component's own default. `protokube.config.render` decides whether a setting
becomes a flag or a file entry in a given Kubernetes version, from these declarations and the flag tables.
"""
