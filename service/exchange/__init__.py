"""Imports data of other programs, and exports data of a store."""
