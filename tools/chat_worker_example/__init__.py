"""A volunteer's worker for chat requests: pops jobs from a horde and answers them with a local backend."""

VERSION = "0.2.0"
BRIDGE_AGENT = f"HordeChatWorkerExample:{VERSION}:tools/chat_worker_example"
"""Name, version and home of this worker, in the form that the horde's statistics expect."""
