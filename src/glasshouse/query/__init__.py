"""Asking a model about records: adapters for every kind of model, and its answers in one form."""
