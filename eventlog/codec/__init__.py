"""Checks and encodes events, decodes log lines, and upcasts lines in older or foreign formats."""
