"""Text analysis: tokens, stems, languages, and their word files."""
