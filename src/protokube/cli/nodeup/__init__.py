"""`protokube nodeup`: provision the machine that it runs on; what it shows meanwhile; the report of a run."""
