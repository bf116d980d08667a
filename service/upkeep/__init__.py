"""Keeps a store healthy: maintenance, erasure, jobs, and the watch."""
