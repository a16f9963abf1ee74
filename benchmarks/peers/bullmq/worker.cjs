// The worker of BullMQ: signs the body of each job and posts it over kept connections.

const { createHmac } = require("node:crypto");
const { Worker } = require("bullmq");
const { Pool } = require("undici");
const { QUEUE, connection } = require("./queue.cjs");

const CONCURRENCY = 100;
const TIMEOUT_MS = 15_000;
const url = new URL(process.env.BENCH_URL);
const key = Buffer.from(process.env.BENCH_SECRET.replace("whsec_", ""), "base64");
const pool = new Pool(url.origin, {
  connections: CONCURRENCY,
  headersTimeout: TIMEOUT_MS,
  bodyTimeout: TIMEOUT_MS,
});

function signedHeaders(id, body) {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "content-type": "application/json; charset=utf-8",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}

async function deliver({ data: { id, body } }) {
  const answer = await pool.request({
    path: url.pathname,
    method: "POST",
    headers: signedHeaders(id, body),
    body,
  });
  await answer.body.dump();
  if (answer.statusCode !== 200) {
    throw new Error(`the receiver answered ${answer.statusCode}`);
  }
}

const worker = new Worker(QUEUE, deliver, {
  connection: connection(),
  concurrency: CONCURRENCY,
  removeOnComplete: { count: 0 },
});
worker.on("failed", (_, error) => console.error(error));
worker.on("error", (error) => console.error(error));
