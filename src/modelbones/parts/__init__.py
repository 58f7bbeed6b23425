"""Building blocks: each gives its tensor patterns and its buffers from named sizes."""
