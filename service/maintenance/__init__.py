"""Maintenance: what a person does to a store as a whole, or asks about it."""
