// A certified OpenID provider on loopback. A person signs in by entering a name.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { Provider } from "oidc-provider";

const { clientId, clientSecret, redirectUri, people } = JSON.parse(process.argv[2]);
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: "test" };

function configuration() {
  return {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri] }],
    jwks: { keys: [key] },
    cookies: { keys: [randomBytes(32).toString("hex")] },
    claims: { openid: ["sub", "org", "groups"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
  };
}

async function consent(provider, request, response, details) {
  const grant = new provider.Grant({
    accountId: details.session.accountId,
    clientId: details.params.client_id,
  });
  grant.addOIDCScope(details.params.scope);
  const result = { consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function interact(provider, request, response) {
  const details = await provider.interactionDetails(request, response);
  const place = `/interaction/${details.uid}`;
  if (request.url.endsWith("/abort")) {
    await provider.interactionFinished(request, response, { error: "access_denied" });
  } else if (details.prompt.name === "consent") {
    await consent(provider, request, response, details);
  } else if (request.method === "POST") {
    const accountId = new URLSearchParams(await text(request)).get("login");
    await provider.interactionFinished(request, response, { login: { accountId } });
  } else {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(`<!doctype html><html lang="en"><title>Example ID</title><link rel="icon" href="data:,">
<form method="post" action="${place}"><label>Name <input name="login"></label><button>Continue</button></form>
<a href="${place}/abort">Cancel</a></html>`);
  }
}

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://localhost:${server.address().port}`;
  const provider = new Provider(issuer, configuration());
  const rest = provider.callback();
  server.on("request", (request, response) => {
    if (request.url.startsWith("/interaction/")) {
      interact(provider, request, response).catch((error) => {
        console.error(error);
        response.destroy();
      });
    } else {
      rest(request, response);
    }
  });
  console.log(issuer);
});
