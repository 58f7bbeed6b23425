"""Layer stacks that several families are made of: a typed config and the skeleton it gives."""
