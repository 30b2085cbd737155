"""instructor: structured output by a forced tool, asked again after a failed validation, and by a loose schema."""

import json
import os

import instructor
import openai
from pydantic import BaseModel, field_validator

refused: list[str] = []


class City(BaseModel):
    name: str
    rainy: bool

    @field_validator("name")
    @classmethod
    def fails_once(cls, name: str) -> str:
        """Refuse the first answer, so that the library replays it and asks again."""
        if not refused:
            refused.append(name)
            raise ValueError("try again")
        return name


def ask(mode: instructor.Mode) -> City:
    """One structured answer."""
    client = instructor.from_openai(openai.OpenAI(max_retries=0), mode=mode)
    messages = [{"role": "user", "content": "Which city?"}]
    return client.chat.completions.create(
        model=os.environ["MODEL"], response_model=City, messages=messages, max_retries=2
    )


by_tool = ask(instructor.Mode.TOOLS)
assert len(refused) == 1
assert by_tool.model_dump() == ask(instructor.Mode.JSON_SCHEMA).model_dump()
print(json.dumps({"structured": by_tool.model_dump()}))
