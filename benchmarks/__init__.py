"""Benchmarks: ratios of figures from one run on one machine, not absolute promises."""
