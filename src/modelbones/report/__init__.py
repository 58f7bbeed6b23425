"""Results to tables, JSON, Markdown and CI annotations. Only this package formats."""
