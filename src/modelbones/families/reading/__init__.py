"""Readings that several families share: one file a kind of fact, with every spelling of it."""
