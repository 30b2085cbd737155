// Vercel's ai with the OpenAI-compatible provider: a tool loop, plain and streamed, and an object.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const provider = createOpenAICompatible({
  name: "horde",
  baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY,
  supportsStructuredOutputs: true,
  includeUsage: true,
});
const model = provider(process.env.MODEL);
const common = {
  model,
  maxRetries: 0,
  prompt: "[[tool_call]]Is it rainy?",
  stopWhen: stepCountIs(3),
  tools: {
    look_up: tool({
      description: "Look a city up.",
      inputSchema: z.object({ name: z.string() }),
      execute: async ({ name }) => `${name}: yes`,
    }),
  },
};
const { text } = await generateText(common);
const streamed = await streamText(common).text;
if (streamed !== text) throw new Error(`streamed ${streamed}, plain ${text}`);
const { object } = await generateObject({
  model,
  maxRetries: 0,
  prompt: "Which city?",
  schema: z.object({ name: z.string(), rainy: z.boolean() }),
});
console.log(JSON.stringify({ tool_loop: text, structured: object }));
