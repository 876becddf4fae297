"""Objects that are applied to the cluster once its API answers, as plain trees, and the decisions about them. Pure."""
