"""Long runs of what must always hold; `make soak`."""
