// A receiver in Express: verifies, stores each event once, responds, and processes it afterwards.
"use strict";

const fs = require("node:fs");
const express = require("express");
const { Webhook } = require("standardwebhooks");
const { Inbox } = require("./inbox");

const secrets = process.env.CUEPOST_WEBHOOK_SECRET.split(",");
const log = process.env.RECEIVER_LOG || "receiver.log";

function note(word, event) {
  fs.appendFileSync(log, `${word} ${event.type} ${event.id} ${event.data.projectId}\n`);
}

// Runs at least once after the delivery was acknowledged; it has to be idempotent.
async function handle(event) {
  switch (event.type) {
    case "webhook.test":
      return note("test", event);
    case "project.completed":
      return note("fetch", event); // GET event.data.resultUrl with your API key
    case "project.failed":
      return note("notify the team", event);
    default:
      return note("ignore", event);
  }
}

// During a rotation there are two secrets; one of them has to match.
function verified(request) {
  for (const secret of secrets) {
    try {
      return new Webhook(secret).verify(request.body, request.headers);
    } catch {
      continue;
    }
  }
  return null;
}

const inbox = new Inbox(process.env.RECEIVER_INBOX || "inbox.jsonl", handle);
const app = express();

// The signature covers the raw bytes, so the body must not be parsed first.
app.post("/cuepost", express.raw({ type: "*/*", limit: "1mb" }), (request, response) => {
  const event = Buffer.isBuffer(request.body) ? verified(request) : null;
  if (event === null || event.id !== request.get("webhook-id")) {
    return response.status(400).json({ error: "not_verified" });
  }
  const isNew = inbox.add(event);
  return response.status(200).json({ status: isNew ? "accepted" : "duplicate" });
});

app.listen(Number(process.env.PORT || 3000), "127.0.0.1", () => {
  inbox.start();
});
