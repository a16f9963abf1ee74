"""The interface that download links lead to, where the service hands out the files itself."""
