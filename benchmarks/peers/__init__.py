"""Task queues that people send webhooks with, each written as its own documentation suggests.

They do less than cuepost: no history, no egress guard, no fairness, and no retries here. Each
stores its jobs on disk. They have a separate virtual environment, which `make peers` creates.
"""
