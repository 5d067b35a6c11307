"""From what is seen and told to what is known: intake, binding to runtimes, the one path into the store."""
