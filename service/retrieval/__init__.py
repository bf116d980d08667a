"""Searches, contexts and answers, and the tools that agents are offered."""
