// An inbox in a file, for one process: one line for each received event, and one when it is done.
"use strict";

const fs = require("node:fs");

const RETRY_SECONDS = [5, 30, 120, 600];
const MEMORY_MS = 35 * 24 * 3600 * 1000; // a manual retry may come for 30 days

class Inbox {
  constructor(path, handle) {
    this.handle = handle;
    this.known = new Map();
    for (const line of fs.existsSync(path) ? fs.readFileSync(path, "utf8").split("\n") : []) {
      this.#read(line);
    }
    this.#rewrite(path);
    this.file = fs.openSync(path, "a");
  }

  start() {
    for (const entry of this.known.values()) {
      if (entry.event) this.#work(entry, 0);
    }
  }

  // True if the event is new. It is on disk when this returns.
  add(event) {
    if (this.known.has(event.id)) return false;
    const entry = { id: event.id, at: Date.now(), event };
    this.#write(entry);
    this.known.set(event.id, entry);
    setImmediate(() => this.#work(entry, 0));
    return true;
  }

  async #work(entry, attempt) {
    try {
      await this.handle(entry.event);
    } catch (error) {
      console.error(`event ${entry.id} failed:`, error);
      const pause = RETRY_SECONDS[Math.min(attempt, RETRY_SECONDS.length - 1)];
      setTimeout(() => this.#work(entry, attempt + 1), pause * 1000);
      return;
    }
    entry.event = null;
    this.#write({ id: entry.id, at: entry.at, event: null });
  }

  #write(entry) {
    fs.writeSync(this.file, JSON.stringify(entry) + "\n");
    fs.fsyncSync(this.file);
  }

  // A crash may leave half a line at the end; its event was never acknowledged.
  #read(line) {
    try {
      const entry = JSON.parse(line);
      if (entry.at > Date.now() - MEMORY_MS) this.known.set(entry.id, entry);
    } catch {
      return;
    }
  }

  #rewrite(path) {
    const lines = [...this.known.values()].map((entry) => JSON.stringify(entry) + "\n");
    const fresh = `${path}.new`;
    const file = fs.openSync(fresh, "w");
    fs.writeSync(file, lines.join(""));
    fs.fsyncSync(file);
    fs.closeSync(file);
    fs.renameSync(fresh, path);
  }
}

module.exports = { Inbox };
