// Lints an OpenAPI document by redocly.yaml; prints each problem, and fails if there is any.
import { lint, loadConfig } from "@redocly/openapi-core";

const [document, configPath] = process.argv.slice(2);
const problems = await lint({ ref: document, config: await loadConfig({ configPath }) });
for (const { ruleId, severity, message, location } of problems) {
  console.log(`${severity} ${ruleId} at ${location[0]?.pointer ?? "#/"}: ${message}`);
}
process.exitCode = problems.length > 0 ? 1 : 0;
