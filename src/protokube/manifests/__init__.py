"""Static pods out of the configuration, one file for each component. Pure."""
