"""A pydantic-ai agent: one with a tool, one whose output is a class."""

import json
import os

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel


class City(BaseModel):
    name: str
    rainy: bool


model = OpenAIChatModel(os.environ["MODEL"])
agent = Agent(model, retries=0)


@agent.tool_plain
def look_up(name: str) -> str:
    """Look a city up."""
    return f"{name}: yes"


last = agent.run_sync("[[tool_call]]Is it rainy?").output
by_tool = Agent(model, output_type=City, retries=0).run_sync("Which city?").output
by_schema = Agent(model, output_type=NativeOutput(City), retries=0).run_sync("Which city?").output
assert by_tool == by_schema
print(json.dumps({"tool_loop": last, "structured": by_schema.model_dump()}))
