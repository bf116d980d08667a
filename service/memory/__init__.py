"""What is remembered: memories, facts, core memory, conversations and daily events."""
