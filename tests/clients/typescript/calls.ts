// The main calls with a client made by openapi-typescript and openapi-fetch; prints what it saw.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { env: Record<string, string> };
const { CLIENT_BASE_URL: baseUrl, CLIENT_API_KEY, CLIENT_SERVICE_KEY } = process.env;
const receiverUrl = process.env["CLIENT_RECEIVER_URL"] ?? "";

function client(key: string | undefined) {
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
}

function answered<T>(answer: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (answer.data === undefined) throw new Error(answer.error?.code);
  return answer.data;
}

const account = client(CLIENT_API_KEY);
const pipeline = client(CLIENT_SERVICE_KEY);

const wanted = {
  params: { header: { "Idempotency-Key": "create-webhook" } },
  body: { url: receiverUrl, events: ["project.completed" as const] },
};
const webhook = answered(await account.POST("/v1/webhooks", wanted));
const repeated = await account.POST("/v1/webhooks", wanted);

const path = { webhookId: webhook.id };
await account.PATCH("/v1/webhooks/{webhookId}", { params: { path }, body: { enabled: false } });
const project = answered(await account.POST("/v1/projects", { body: { name: "Trailer" } }));
const statuses: components["schemas"]["ProjectStatus"][] = ["processing", "exporting", "completed"];
const reported = answered(
  await pipeline.POST("/v1/milestones", {
    params: { header: { "Idempotency-Key": "report-milestones" } },
    body: {
      milestones: statuses.map((status) => ({ reportId: status, projectId: project.id, status })),
    },
  }),
);
await account.PATCH("/v1/webhooks/{webhookId}", { params: { path }, body: { enabled: true } });

const events = answered(
  await account.GET("/v1/events", {
    params: { query: { projectId: project.id, type: "project.completed" } },
  }),
);
const bodies = events.data.map((event) => event.body);
const results = bodies.map((body) => (body.type === "project.completed" ? body.data.resultUrl : ""));

const deliveries = answered(
  await account.GET("/v1/deliveries", { params: { query: { status: "cancelled" } } }),
);
const retried: string[] = [];
for (const delivery of deliveries.data) {
  const again = await account.POST("/v1/webhooks/{webhookId}/deliveries/{deliveryId}/retry", {
    params: {
      path: { webhookId: delivery.webhookId, deliveryId: delivery.id },
      header: { "Idempotency-Key": `retry-${delivery.id}` },
    },
  });
  retried.push(answered(again).eventId);
}

const refused = await account.POST("/v1/webhooks", { body: { url: "ftp://hooks.example.com/" } });
const problem = refused.error;

console.log(
  JSON.stringify({
    repeated: repeated.data?.id === webhook.id,
    replayed: repeated.response.headers.get("Idempotency-Replayed"),
    accepted: reported.results.map((result) => result.accepted),
    resultUrls: results.map((url) => url.replace(project.id, "PROJECT")),
    deliveries: deliveries.data.map((each) => [each.eventType, each.status, each.reason]),
    retriedEvents: retried,
    refused: [problem?.status, problem?.code],
    errors: problem?.errors?.map((error) => [error.field, error.code]),
  }),
);
