"""The OpenAPI document, generated from the route table, wire models and event catalogue."""
