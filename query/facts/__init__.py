"""Facts, which are known by topic, and answers to questions about them in natural language."""
