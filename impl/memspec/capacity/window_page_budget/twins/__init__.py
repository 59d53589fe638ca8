"""What the faults put in the place of the reference's functions."""
