"""Every decision taken, every flag known, and for each value where it came from."""
