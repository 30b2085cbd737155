"""The OpenAI-compatible front: holds clients' connections and speaks to the native API over HTTP."""
