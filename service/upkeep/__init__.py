"""What keeps a store well: maintenance, erasure, jobs, and the watch."""
