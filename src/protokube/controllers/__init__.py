"""What keeps the cluster right once its API answers: it watches objects and carries out what they ask for."""
