"""Controllers: watch objects of the cluster's API and reconcile what they ask for."""
