"""Moving in and out: imports of other programs' data, and exports."""
