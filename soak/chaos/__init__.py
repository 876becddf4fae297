"""Random faults on a real cluster, with linearizability and invariants checked all the while."""
