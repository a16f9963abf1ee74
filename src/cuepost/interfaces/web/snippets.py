"""Code samples that verify a delivery."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snippet:
    name: str
    code: str


PYTHON = """\
import base64, hashlib, hmac, os, time

KEY = base64.b64decode(os.environ["CUEPOST_WEBHOOK_SECRET"].removeprefix("whsec_"))

def is_genuine(headers: dict[str, str], body: bytes) -> bool:
    message_id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    mine = "v1," + base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    return any(hmac.compare_digest(mine, each) for each in headers["webhook-signature"].split())
"""

FASTAPI = """\
import os
from fastapi import FastAPI, Request, Response
from standardwebhooks import Webhook, WebhookVerificationError

app = FastAPI()
webhook = Webhook(os.environ["CUEPOST_WEBHOOK_SECRET"])

@app.post("/cuepost")
async def receive(request: Request) -> Response:
    body = await request.body()          # the exact bytes, not the parsed JSON
    try:
        event = webhook.verify(body, dict(request.headers))
    except WebhookVerificationError:
        return Response(status_code=401)
    # Store `event` under its id, answer at once, and work on it afterwards.
    return Response(status_code=204)
"""

EXPRESS = """\
import express from "express";
import { createHmac, timingSafeEqual } from "node:crypto";

const key = Buffer.from(process.env.CUEPOST_WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");
const app = express();

// express.raw keeps the exact bytes; express.json would not.
app.post("/cuepost", express.raw({ type: "application/json" }), (request, response) => {
  const id = request.get("webhook-id"), timestamp = request.get("webhook-timestamp");
  const mine = createHmac("sha256", key)
    .update(`${id}.${timestamp}.`).update(request.body).digest();
  const genuine = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300 &&
    (request.get("webhook-signature") ?? "").split(" ").some((entry) => {
      const theirs = Buffer.from(entry.replace(/^v1,/, ""), "base64");
      return theirs.length === mine.length && timingSafeEqual(theirs, mine);
    });
  response.sendStatus(genuine ? 204 : 401);
});

app.listen(3000);
"""

GO = """\
func genuine(r *http.Request, body []byte) bool {
	secret := strings.TrimPrefix(os.Getenv("CUEPOST_WEBHOOK_SECRET"), "whsec_")
	key, err := base64.StdEncoding.DecodeString(secret)
	timestamp, bad := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil || bad != nil || math.Abs(float64(time.Now().Unix()-timestamp)) > 300 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", r.Header.Get("webhook-id"), timestamp, body)
	mine := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, theirs := range strings.Fields(r.Header.Get("webhook-signature")) {
		if hmac.Equal(mine, []byte(theirs)) {
			return true
		}
	}
	return false
}
"""

CURL = """\
# Send your own receiver a request that is signed like a delivery.
BODY='{"id":"0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071","type":"webhook.test","createdAt":"2026-01-02T03:04:05.678Z","data":{}}'
ID=0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071 NOW=$(date +%s)
KEY=$(printf %s "${CUEPOST_WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -vtx1 | tr -d ' \\n')
SIGNATURE=$(printf %s "$ID.$NOW.$BODY" \\
  | openssl dgst -sha256 -mac HMAC -macopt hexkey:"$KEY" -binary | base64)
curl http://localhost:3000/cuepost -H 'content-type: application/json' \\
  -H "webhook-id: $ID" -H "webhook-timestamp: $NOW" -H "webhook-signature: v1,$SIGNATURE" \\
  --data-raw "$BODY"
"""

SNIPPETS = (
    Snippet("Python", PYTHON),
    Snippet("FastAPI", FASTAPI),
    Snippet("Express", EXPRESS),
    Snippet("Go", GO),
    Snippet("curl", CURL),
)
