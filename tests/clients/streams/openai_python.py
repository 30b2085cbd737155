"""The official SDK: raw chunks, and the helper that accumulates them."""

import json
import os

import openai

client = openai.OpenAI(max_retries=0)
asked = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": "Tell me."}]}
deltas, thoughts, usage = [], [], None
for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
    usage = chunk.usage or usage
    for choice in chunk.choices:
        deltas.append(choice.delta.content or "")
        thoughts.append(getattr(choice.delta, "reasoning_content", None) or "")
with client.chat.completions.stream(**asked) as stream:
    helped = "".join(event.delta for event in stream if event.type == "content.delta")
    final = stream.get_final_completion().choices[0]
assert helped == final.message.content == "".join(deltas)
assert final.finish_reason == "stop"
assert usage is not None
assert "".join(thoughts)
print(json.dumps({"text": helped, "parts": sum(map(bool, deltas))}))
