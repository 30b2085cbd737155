"""LangChain's chat model: chunks added up."""

import json
import os

from langchain_openai import ChatOpenAI

chunks = list(ChatOpenAI(model=os.environ["MODEL"], max_retries=0, stream_usage=True).stream("Tell me."))
whole = chunks[0]
for chunk in chunks[1:]:
    whole += chunk
assert whole.usage_metadata is not None
assert whole.response_metadata["finish_reason"] == "stop"
print(json.dumps({"text": str(whole.text), "parts": sum(bool(chunk.text) for chunk in chunks)}))
