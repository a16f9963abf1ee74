"""The only place that speaks SQL: one schema, two engines."""
