"""OpenID Connect: the provider's documents, its keys, and the exchange of a code for claims."""
