"""Searches, contexts and answers, and the tools offered to agents."""
