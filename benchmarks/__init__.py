"""Benchmarks: ratios of things measured in one run on one machine, never absolute promises."""
