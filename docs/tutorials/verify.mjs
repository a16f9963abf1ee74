import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

// The raw body on standard input; secret and headers from the environment.
const headers = {
  "webhook-id": process.env.WEBHOOK_ID,
  "webhook-timestamp": process.env.WEBHOOK_TIMESTAMP,
  "webhook-signature": process.env.WEBHOOK_SIGNATURE,
};
const event = new Webhook(process.env.SECRET).verify(readFileSync(0, "utf8"), headers);
console.log(event.type);
