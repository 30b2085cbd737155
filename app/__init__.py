"""The native API and the rules that every process shares.

Empty on purpose: the front imports `app.domain` and must pull in nothing else.
"""
