"""Where a Mac looks for libraries: what py2app's start-up code adds a bundle's own folder to."""

DEFAULT_FRAMEWORK_FALLBACK = ["/Library/Frameworks", "/System/Library/Frameworks"]
DEFAULT_LIBRARY_FALLBACK = ["/usr/local/lib", "/lib", "/usr/lib"]
