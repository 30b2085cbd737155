"""LangChain's chat model: bound tools, and structured output by a strict schema."""

import json
import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class City(BaseModel):
    name: str
    rainy: bool


@tool
def look_up(name: str) -> str:
    """Look a city up."""
    return f"{name}: yes"


model = ChatOpenAI(model=os.environ["MODEL"], max_retries=0)
bound = model.bind_tools([look_up])
messages: list = [HumanMessage("[[tool_call]]Is it rainy?")]
first = bound.invoke(messages)
messages += [first, ToolMessage(look_up.invoke(first.tool_calls[0]["args"]), tool_call_id=first.tool_calls[0]["id"])]
last = bound.invoke(messages).text
structured = model.with_structured_output(City).invoke("Which city?")
forced = model.with_structured_output(City, method="function_calling").invoke("Which city?")
assert structured == forced
print(json.dumps({"tool_loop": str(last), "structured": structured.model_dump()}))
