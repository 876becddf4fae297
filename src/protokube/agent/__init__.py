"""One master, round after round."""
