"""The interface for download links, if the service serves the files itself."""
