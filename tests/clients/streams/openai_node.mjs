// The official SDK: raw chunks, and the helper that accumulates them.
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0 });
const asked = { model: process.env.MODEL, messages: [{ role: "user", content: "Tell me." }] };
const parts = [];
for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
  const text = chunk.choices[0]?.delta?.content;
  if (text) parts.push(text);
}
const helped = await client.chat.completions.stream(asked).finalContent();
if (helped !== parts.join("")) throw new Error(`helper ${helped}, chunks ${parts.join("")}`);
console.log(JSON.stringify({ text: helped, parts: parts.length }));
