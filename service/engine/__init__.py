"""What operations work with: the log, the read model, models of this machine, and requests to others."""
