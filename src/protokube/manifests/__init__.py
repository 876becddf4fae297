"""Static pod manifests from the configuration, one file for each component. Pure."""
