"""The openai-agents SDK on chat completions: an agent with a tool, and one with an output type."""

import json
import os

import openai
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from pydantic import BaseModel


class City(BaseModel):
    name: str
    rainy: bool


@function_tool
def look_up(name: str) -> str:
    """Look a city up."""
    return f"{name}: yes"


set_tracing_disabled(True)
model = OpenAIChatCompletionsModel(os.environ["MODEL"], openai.AsyncOpenAI(max_retries=0))
agent = Agent(name="asker", model=model, tools=[look_up])
last = Runner.run_sync(agent, "[[tool_call]]Is it rainy?", max_turns=3).final_output
structured = Runner.run_sync(Agent(name="teller", model=model, output_type=City), "Which city?").final_output
print(json.dumps({"tool_loop": last, "structured": structured.model_dump()}))
