// Vercel's ai with the OpenAI-compatible provider: text, reasoning and the finish reason of a stream.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const provider = createOpenAICompatible({
  name: "horde",
  baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY,
  includeUsage: true,
});
const result = streamText({ model: provider(process.env.MODEL), maxRetries: 0, prompt: "Tell me." });
const parts = [];
for await (const part of result.textStream) if (part) parts.push(part);
if ((await result.finishReason) !== "stop") throw new Error(`finished for ${await result.finishReason}`);
if (!(await result.reasoningText)) throw new Error("no reasoning");
console.log(JSON.stringify({ text: parts.join(""), parts: parts.length }));
