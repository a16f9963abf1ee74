const broker = new URL(process.env.BENCH_BROKER);

exports.QUEUE = "webhooks";
exports.connection = () => ({
  host: broker.hostname,
  port: Number(broker.port),
  maxRetriesPerRequest: null,
});
