// Keyboard shortcuts: / searches, j and k move between rows, r retries, ? shows help. Users can turn them off.
"use strict";

const OFF = "cuepost-shortcuts-off";
const help = document.getElementById("shortcuts");
const retry = document.getElementById("retry-dialog");
const ROWS = "table.rows tbody tr:has(a), .cards > .card";

function search() {
  const field = document.querySelector("[data-search]");
  if (field) field.focus();
  else location.assign(help.dataset.searchPage);
}

function currentRow() {
  return document.activeElement.closest(ROWS);
}

function move(step) {
  const rows = [...document.querySelectorAll(ROWS)];
  const place = rows.indexOf(currentRow());
  const next = place < 0 ? rows[0] : rows[place + step];
  next?.querySelector("a").focus();
}

// Of the row with the focus, or of the page if it is that of one delivery.
function confirmRetry() {
  if (!retry) return;
  const source = currentRow() ?? document.querySelector("[data-retry-page]");
  if (!source) announce("Move to a delivery with j and k first.");
  else if (!source.dataset.retry) announce("A delivery can be retried after it has ended.");
  else {
    retry.querySelector("form").action = source.dataset.retry;
    retry.querySelector("[data-retry-name]").textContent = source.dataset.name;
    retry.showModal();
  }
}

const SHORTCUTS = new Map([
  ["/", search], ["j", () => move(1)], ["k", () => move(-1)], ["r", confirmRetry], ["?", () => help.showModal()],
]);

function isTyping(target) {
  return target.closest("input, textarea, select, [contenteditable], dialog[open]") !== null;
}

if (help) {
  const toggle = help.querySelector("[name=shortcuts]");
  toggle.checked = localStorage.getItem(OFF) === null;
  toggle.addEventListener("change", () => {
    if (toggle.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "");
  });
  document.querySelector("[data-shortcuts]").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    const action = SHORTCUTS.get(event.key);
    if (!action || !toggle.checked || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    event.preventDefault();
    action();
  });
  if (location.hash === "#search") search();
}
