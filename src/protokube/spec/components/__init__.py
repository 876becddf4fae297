"""The settings of each Kubernetes component, each with its flag and its entry in the component's own file.

A setting left unsaid is left to the component's own default. Which form a setting takes in a given
Kubernetes version is decided in `protokube.config.render`, from what is declared here and from the flag tables.
"""
