"""LiteLLM's SDK: a tool loop with its own replay, and a response format from a model class."""

import json
import os

import litellm
from pydantic import BaseModel


class City(BaseModel):
    name: str
    rainy: bool


common = {
    "model": f"openai/{os.environ['MODEL']}",
    "api_base": os.environ["OPENAI_BASE_URL"],
    "api_key": os.environ["OPENAI_API_KEY"],
    "num_retries": 0,
}
parameters = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
tools = [{"type": "function", "function": {"name": "look_up", "description": "Look up.", "parameters": parameters}}]
messages: list = [{"role": "user", "content": "[[tool_call]]Is it rainy?"}]
first = litellm.completion(messages=messages, tools=tools, **common).choices[0].message
answer = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "name": "look_up", "content": "yes"}
messages += [first, answer]
last = litellm.completion(messages=messages, tools=tools, **common).choices[0].message.content
asked = [{"role": "user", "content": "Which city?"}]
structured = litellm.completion(messages=asked, response_format=City, **common).choices[0].message.content
print(json.dumps({"tool_loop": last, "structured": json.loads(structured)}))
