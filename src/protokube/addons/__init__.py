"""What is put into the cluster once its API answers: objects as plain trees, and the decisions about them. Pure."""
