"""The wrong halves of the broken twins: each function stands in for the one of the reference that it gets wrong."""
