// Hands jobs to BullMQ: a hundred at a time, or one by one at a rate. Arguments: jobs, result.

const { readFileSync, writeFileSync } = require("node:fs");
const { setTimeout: wait } = require("node:timers/promises");
const { Queue } = require("bullmq");
const { QUEUE, connection } = require("./queue.cjs");

const AT_ONCE = 100;

async function main(told, result) {
  const { jobs, rate } = JSON.parse(readFileSync(told, "utf8"));
  const queue = new Queue(QUEUE, { connection: connection() });
  await queue.waitUntilReady();
  const before = process.cpuUsage();
  const began = rate ? await paced(queue, jobs, rate) : await atOnce(queue, jobs);
  const used = process.cpuUsage(before);
  await queue.close();
  const cpu = (used.user + used.system) / 1e6;
  writeFileSync(result, JSON.stringify({ began, cpu }));
}

async function atOnce(queue, jobs) {
  const began = {};
  for (let first = 0; first < jobs.length; first += AT_ONCE) {
    const some = jobs.slice(first, first + AT_ONCE);
    for (const { id } of some) began[id] = Date.now() / 1000;
    await queue.addBulk(some.map((data) => ({ name: "deliver", data })));
  }
  return began;
}

async function paced(queue, jobs, rate) {
  const began = {};
  const start = performance.now();
  for (const [number, data] of jobs.entries()) {
    const due = start + (number * 1000) / rate - performance.now();
    if (due > 0) await wait(due);
    began[data.id] = (performance.timeOrigin + performance.now()) / 1000;
    await queue.add("deliver", data);
  }
  return began;
}

main(...process.argv.slice(2));
