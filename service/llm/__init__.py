"""What a language model does: its requests, its answers, and a task each."""
