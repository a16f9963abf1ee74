"""The only package with SQL: one schema, two engines."""
