"""Task queues that people send webhooks with, each written as its own documentation suggests.

They do less than cuepost: no history, no guard, no fairness, no retries here. Each keeps its jobs
on disk. They live in a virtual environment of their own; `make peers` makes it.
"""
