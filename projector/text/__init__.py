"""What texts are made of: the words of languages, and the files that hold them."""
