"""The official SDK: its tool loop with replayed messages, its parse helper, and its stream helper."""

import json
import os

import openai
from pydantic import BaseModel


class City(BaseModel):
    name: str
    rainy: bool


client = openai.OpenAI(max_retries=0)
model = os.environ["MODEL"]
tool = openai.pydantic_function_tool(City, name="look_up")
messages: list = [{"role": "user", "content": "[[tool_call]]Is it rainy?"}]
first = client.chat.completions.create(model=model, messages=messages, tools=[tool]).choices[0].message
messages += [first, {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "yes"}]
last = client.chat.completions.create(model=model, messages=messages, tools=[tool]).choices[0].message.content
parsed = client.chat.completions.parse(
    model=model, messages=[{"role": "user", "content": "Which city?"}], response_format=City
)
with client.chat.completions.stream(
    model=model, messages=[{"role": "user", "content": "[[tool_call]]hi"}], tools=[tool]
) as stream:
    replayed = stream.get_final_completion().choices[0].message
again = client.chat.completions.create(
    model=model,
    messages=[
        {"role": "user", "content": "[[tool_call]]again"},
        replayed,
        {"role": "tool", "tool_call_id": replayed.tool_calls[0].id, "content": "yes"},
    ],
    tools=[tool],
)
assert again.choices[0].message.content == "again"
print(json.dumps({"tool_loop": last, "structured": parsed.choices[0].message.parsed.model_dump()}))
