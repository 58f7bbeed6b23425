"""One file a quantisation scheme: how it stores a weight, and how its configs claim it."""
