"""Imports of other programs' data, and exports."""
