"""What agents say to each other: durable, in order, and typed only where it can be taken."""
