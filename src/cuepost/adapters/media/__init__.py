"""Media stores: a folder of this machine, and S3."""
