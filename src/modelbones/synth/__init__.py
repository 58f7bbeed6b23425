"""Write a checkpoint that satisfies the contract of a config: for loaders' tests, at any size."""
