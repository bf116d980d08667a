"""Imports data from other programs, and exports data from a store."""
