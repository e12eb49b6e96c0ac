"""Contact with the world: one kind of it, and one I/O library, per module."""
