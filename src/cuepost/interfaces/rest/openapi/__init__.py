"""The OpenAPI document, made from the route table, the wire models and the event catalogue."""
