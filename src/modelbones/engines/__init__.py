"""What engines really keep for a sequence: one module or package an engine.

Each maps a skeleton's buffers to what that engine stores, pages, pads and pools, by
rules kept as data with their sources. Nothing below this floor rounds to a page.
"""
