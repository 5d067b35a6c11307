"""A stand-in for ctypes.macholib, which Debian's Python lacks, for bundles of the tests."""
