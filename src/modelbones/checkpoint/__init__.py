"""What is stored: readers of checkpoint headers, never of the data.

from modelbones.checkpoint.directory import read_checkpoint
"""
