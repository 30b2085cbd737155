// Keeps the figures of the status page new, and asks for the kudos of a key without leaving the page.
const live = document.getElementById("live");
const state = document.getElementById("live-state");

const AGAIN_MS = 10_000;
const SILENT_MS = 30_000;
let lastNews = Date.now();

function exchange(html) {
  const news = document.createElement("template");
  news.innerHTML = html;
  if (!document.getElementById("figures")) {
    live.replaceChildren(news.content);
    return;
  }
  for (const part of news.content.querySelectorAll("[data-live]")) {
    const shown = document.getElementById(part.id);
    if (shown.innerHTML !== part.innerHTML) shown.innerHTML = part.innerHTML;
  }
}

function listen() {
  const events = new EventSource(live.dataset.events);
  events.addEventListener("status", (event) => {
    lastNews = Date.now();
    exchange(JSON.parse(event.data).html);
  });
  events.addEventListener("error", () => {
    // The browser comes back by itself, except after an answer that is no stream.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, AGAIN_MS);
  });
}

function sayWhetherLive() {
  const silent = Date.now() - lastNews > SILENT_MS;
  state.hidden = !silent;
  state.textContent = silent ? "No news for a while. Trying to reach the horde again." : "";
}

function said(text, isProblem = false) {
  const line = document.createElement("p");
  line.textContent = text;
  line.classList.toggle("problem", isProblem);
  document.getElementById("account").replaceChildren(line);
}

async function showKudos(event) {
  event.preventDefault();
  // The key goes into a header: a URL would be written into logs and histories.
  const apikey = document.getElementById("key").value.trim();
  try {
    const answer = await fetch("/api/v2/find_user", { headers: { apikey }, cache: "no-store" });
    const body = await answer.json();
    if (!answer.ok) return said(body.message, true);
    const waiting = body.evaluating_kudos ? ` ${body.evaluating_kudos.toLocaleString("en")} more wait until the account is trusted.` : "";
    return said(`${body.username} has ${body.kudos.toLocaleString("en")} kudos.${waiting}`);
  } catch {
    return said("The horde cannot be reached right now. Try again in a minute.", true);
  }
}

listen();
setInterval(sayWhetherLive, 5_000);
document.getElementById("kudos-form").addEventListener("submit", showKudos);
