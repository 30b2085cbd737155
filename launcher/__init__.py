"""The launcher: one command that brings a whole horde up on one machine, and takes it down again.

It starts what is not there yet (PostgreSQL, Valkey, S3, a model), hands every
process to supervisord, and waits until a chat completion really works
(specification, operations O1).
"""
