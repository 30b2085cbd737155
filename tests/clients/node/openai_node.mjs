// The official SDK: its runTools loop and its parse helper.
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ maxRetries: 0 });
const model = process.env.MODEL;
const runner = client.chat.completions.runTools({
  model,
  messages: [{ role: "user", content: "[[tool_call]]Is it rainy?" }],
  tools: [
    {
      type: "function",
      function: {
        name: "look_up",
        description: "Look a city up.",
        parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
        parse: JSON.parse,
        function: ({ name }) => `${name}: yes`,
      },
    },
  ],
});
const last = await runner.finalContent();
const City = z.object({ name: z.string(), rainy: z.boolean() });
const parsed = await client.chat.completions.parse({
  model,
  messages: [{ role: "user", content: "Which city?" }],
  response_format: zodResponseFormat(City, "city"),
});
console.log(JSON.stringify({ tool_loop: last, structured: parsed.choices[0].message.parsed }));
