// A conversation with one model, streamed. Nothing of it is stored: it is gone with the page.
const at = (id) => document.getElementById(id);
const [form, model, key, log, message] = ["chat", "model", "key", "log", "message"].map(at);
const [progress, trouble, send, stop] = ["progress", "trouble", "send", "stop"].map(at);

const UNREACHABLE = "The horde cannot be reached. Check your connection and try again.";
const WAITING = "Waiting for a worker …";
const UNDER_WAY = "A reply is under way. Send this when it has ended, or stop it.";
const LATE_MS = 20_000;

let turns = [];
let running = null;

function make(name, style, text = "") {
  const element = document.createElement(name);
  element.className = style;
  element.textContent = text;
  return element;
}

function show(role, who, text = "") {
  const turn = make("article", `turn ${role}`);
  const said = make("p", "said", text);
  turn.append(make("h2", "who", who), said);
  log.append(turn);
  log.scrollTop = log.scrollHeight;
  return { turn, said };
}

function headers() {
  return { "Content-Type": "application/json", Authorization: `Bearer ${key.value.trim() || form.dataset.anonymous}` };
}

async function loadModels() {
  const names = [];
  try {
    const answer = await fetch("/v1/models");
    if (answer.ok) names.push(...(await answer.json()).data.map((entry) => entry.id));
    trouble.textContent = answer.ok ? "" : await refusal(answer);
  } catch {
    trouble.textContent = UNREACHABLE;
  }
  const chosen = model.value;
  const options = names.map((name) => new Option(name, name, false, name === chosen));
  model.replaceChildren(...(options.length ? options : [new Option("No model is online", "")]));
  if (!options.length) setTimeout(loadModels, LATE_MS);
}

async function refusal(answer) {
  try {
    const { error, message: words } = await answer.json();
    return error?.message ?? words ?? UNREACHABLE;
  } catch {
    return `The horde answered with status ${answer.status} and no reason. Try again in a minute.`;
  }
}

// The data of each event, as it comes; an event may be cut anywhere between two reads.
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) yield part.slice(6);
  }
}

function add(reply, delta) {
  const isLow = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  if (delta.reasoning_content) {
    reply.thought ??= reply.turn.insertBefore(make("p", "thought"), reply.said);
    reply.thought.textContent += delta.reasoning_content;
  }
  reply.said.textContent += delta.content ?? "";
  // Who has scrolled up to read is left there.
  if (isLow) log.scrollTop = log.scrollHeight;
}

async function relay(answer, reply) {
  for await (const data of events(answer)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    const [choice] = chunk.choices;
    if (choice) add(reply, choice.delta);
    if (choice?.delta.content && progress.textContent === WAITING) progress.textContent = "";
    if (chunk.x_horde) tellCost(reply, chunk.x_horde, choice?.finish_reason);
  }
  throw new Error("The reply was cut off. Send the message again.");
}

function tellCost(reply, horde, reason) {
  const cut = reason === "length" ? " The reply reached its longest length." : "";
  const worker = horde.worker?.name ? `By ${horde.worker.name}` : "Done";
  reply.turn.append(make("p", "soft", `${worker}, ${horde.kudos} kudos.${cut}`));
}

async function ask(messages, signal, reply) {
  const body = JSON.stringify({ model: model.value, messages, stream: true });
  const answer = await fetch("/v1/chat/completions", { method: "POST", headers: headers(), body, signal });
  if (!answer.ok) throw new Error(await refusal(answer));
  await relay(answer, reply);
}

function setRunning(controller) {
  running = controller;
  send.disabled = model.disabled = controller !== null;
  stop.disabled = controller === null;
}

async function take(text) {
  const conversation = turns;
  const asked = show("user", "You", text);
  conversation.push({ role: "user", content: text });
  const reply = show("assistant", model.value);
  reply.turn.setAttribute("aria-busy", "true");
  setRunning(new AbortController());
  const { signal } = running;
  trouble.textContent = "";
  progress.textContent = WAITING;
  try {
    await ask(conversation, signal, reply);
    conversation.push({ role: "assistant", content: reply.said.textContent });
    progress.textContent = "";
  } catch (error) {
    progress.textContent = signal.aborted ? "Stopped." : "";
    if (!signal.aborted) trouble.textContent = error instanceof TypeError ? UNREACHABLE : error.message;
    if (signal.aborted && reply.said.textContent) {
      // What a person stopped is part of the conversation.
      conversation.push({ role: "assistant", content: reply.said.textContent });
    } else {
      takeBack(conversation, asked, reply, text);
    }
  }
  reply.turn.removeAttribute("aria-busy");
  setRunning(null);
  message.focus();
}

// As if it had not been sent; the text goes back to where it was written.
function takeBack(conversation, asked, reply, text) {
  conversation.pop();
  asked.turn.remove();
  reply.turn.remove();
  if (conversation === turns && !message.value) message.value = text;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = message.value.trim();
  if (!text) return;
  if (running) {
    progress.textContent = UNDER_WAY;
    return;
  }
  message.value = "";
  take(text);
});
message.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
document.addEventListener("keydown", (event) => event.key === "Escape" && running?.abort());
stop.addEventListener("click", () => running?.abort());
at("clear").addEventListener("click", () => {
  running?.abort();
  turns = [];
  log.replaceChildren();
  trouble.textContent = progress.textContent = "";
  message.focus();
});
loadModels();
