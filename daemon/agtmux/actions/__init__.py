"""What can be done to an agent from outside, each guarded by what was known when it was decided."""
