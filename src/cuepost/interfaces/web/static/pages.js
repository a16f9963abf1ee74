// Times in the viewer's zone, countdowns, copy buttons, live rows. Every page works without this script.
"use strict";

document.documentElement.classList.add("js");

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const dayAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

// As `relative` of times.py writes it.
function relative(at) {
  const seconds = Math.floor(Math.abs(Date.now() - at) / 1000);
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    if (seconds >= length) {
      const amount = `${Math.floor(seconds / length)} ${unit}`;
      return at > Date.now() ? `in ${amount}` : `${amount} ago`;
    }
  }
  return "now";
}

function localise(within) {
  for (const time of within.querySelectorAll("time[datetime]:not([data-local])")) {
    const shown = dayAndTime.format(new Date(time.dateTime));
    if ("relative" in time.dataset) time.title = `${shown} (${time.title})`;
    else time.textContent = shown;
    time.dataset.local = "";
  }
  for (const time of within.querySelectorAll("time[data-relative]")) {
    time.textContent = relative(new Date(time.dateTime));
  }
}

// Fields hold UTC as the server writes them; people read and type the time of their zone.
function localField(input) {
  if (!input.defaultValue) return;
  const at = new Date(`${input.defaultValue}Z`);
  const shifted = new Date(at - at.getTimezoneOffset() * 60000);
  input.value = shifted.toISOString().slice(0, input.defaultValue.length);
}
for (const input of document.querySelectorAll("input[data-utc]")) localField(input);
document.addEventListener("formdata", (event) => {
  for (const input of event.target.querySelectorAll("input[data-utc]")) {
    if (!input.value) continue;
    const written = new Date(input.value).toISOString();
    event.formData.set(input.name, written.slice(0, input.step === "1" ? 19 : 16));
  }
});
document.querySelector("[data-zone]").textContent = `Times are in your time zone, ${zone}.`;

const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const shortDayAndTime = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });

// Labels of whole days are days in UTC, and stay as they are.
function localiseCharts(within) {
  for (const tick of within.querySelectorAll("[data-tick]")) {
    const isAxis = tick.tagName === "text", seconds = Number(tick.dataset.interval);
    if (seconds >= 86400 || (isAxis && seconds > 3600)) continue;
    tick.textContent = (isAxis ? timeOfDay : shortDayAndTime).format(new Date(tick.dataset.tick));
  }
}

function span(milliseconds) {
  let seconds = Math.max(Math.round(milliseconds / 1000), 0);
  const parts = [];
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    if (seconds >= length || parts.length) {
      parts.push(`${Math.floor(seconds / length)} ${unit}`);
      seconds %= length;
    }
  }
  return parts.slice(0, 2).filter((part) => !part.startsWith("0 ")).join(" ") || "0 s";
}

function countDown() {
  for (const each of document.querySelectorAll("[data-until]")) {
    const left = new Date(each.dataset.until) - Date.now();
    each.textContent = left > 0 ? `in ${span(left)}` : "now";
  }
}

function announce(sentence) {
  document.getElementById("announcer").textContent = sentence;
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    announce("Copied to the clipboard.");
  } catch {
    button.textContent = "Selected: copy with the keyboard";
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
  }
  setTimeout(() => { button.textContent = before; }, 2000);
}

function parsedRow(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html.trim();
  return holder.content.querySelector("tr");
}

function watch(body) {
  const toggle = document.querySelector("[data-live-toggle]");
  const state = document.querySelector("[data-live-state]");
  let source = null;

  function take(message) {
    const { id, html } = JSON.parse(message.data);
    const row = parsedRow(html), known = document.getElementById(`row-${id}`);
    localise(row);
    if (known) {
      const hadFocus = known.contains(document.activeElement);
      if (known.innerHTML !== row.innerHTML) known.replaceWith(row);
      if (hadFocus) document.querySelector(`[id="row-${id}"] a`).focus();
    } else {
      row.classList.add("fresh");
      setTimeout(() => row.classList.remove("fresh"), 3000);
      const newer = [...body.rows].find((each) => each.id < row.id);
      body.insertBefore(row, newer ?? null);
      while (body.rows.length > Number(body.dataset.most)) body.deleteRow(-1);
      document.querySelector("[data-live-empty]")?.remove();
    }
    countDown();
  }

  function start() {
    source = new EventSource(body.dataset.live);
    source.addEventListener("row", take);
    source.addEventListener("open", () => { state.textContent = "Live: new rows appear automatically."; });
    source.addEventListener("error", () => { state.textContent = "Reconnecting …"; });
    toggle.textContent = "Pause";
    toggle.setAttribute("aria-pressed", "false");
  }

  function pause() {
    source.close();
    source = null;
    toggle.textContent = "Resume";
    toggle.setAttribute("aria-pressed", "true");
    state.textContent = "Paused.";
  }

  toggle.addEventListener("click", () => (source ? pause() : start()));
  addEventListener("pagehide", () => source?.close());
  start();
}

// The theme changes without a reload; a cookie that scripts cannot read remembers it.
async function chooseTheme(event) {
  event.preventDefault();
  const { form, value } = event.submitter;
  const theme = value === "system" ? null : value;
  const body = new URLSearchParams(new FormData(form, event.submitter));
  await fetch(form.action, { method: "POST", body, headers: { "hx-request": "true" } });
  document.documentElement.toggleAttribute("data-theme", theme !== null);
  if (theme) document.documentElement.dataset.theme = theme;
  document.querySelector("meta[name=color-scheme]").content = theme ?? "light dark";
  for (const each of form.querySelectorAll("button")) each.setAttribute("aria-pressed", String(each === event.submitter));
}
document.querySelector("[data-themes]")?.addEventListener("submit", chooseTheme);

// A page that is rendered ahead of time must not use up a link.
const atOnce = document.querySelector("[data-submit-at-once]");
if (document.prerendering) document.addEventListener("prerenderingchange", () => atOnce?.requestSubmit(), { once: true });
else atOnce?.requestSubmit();

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

// A reload of a fragment must not close what the user has opened or focused.
document.addEventListener("htmx:beforeSwap", (event) => {
  const kept = event.detail.target.closest("[data-keep-open]");
  if (!kept) return;
  const open = [...kept.querySelectorAll("details[open]")].map((each) => each.id);
  if (kept.contains(document.activeElement) || open.length) event.detail.shouldSwap = false;
});
document.addEventListener("htmx:sendError", () => announce("The server is unreachable; try again."));
document.addEventListener("htmx:afterSettle", () => { localise(document); localiseCharts(document); countDown(); });

localise(document);
localiseCharts(document);
countDown();
setInterval(countDown, 1000);
setInterval(() => localise(document), 10000);
for (const body of document.querySelectorAll("[data-live]")) watch(body);
