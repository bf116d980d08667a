"""Events as lines: checked, encoded, decoded, and brought to the present shape."""
