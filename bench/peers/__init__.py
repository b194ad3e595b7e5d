"""Each engine as a runner of the same recipes, as its own documentation would have it written."""
