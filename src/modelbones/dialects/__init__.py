"""How other writers spell a contract: recognised by evidence, then checked as such."""
