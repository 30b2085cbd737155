"""Celery: when and how often work is done, never what it is."""
