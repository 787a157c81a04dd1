"""Benchmarks: programs that measure, JSON files with what they measured, and the report made from them."""
