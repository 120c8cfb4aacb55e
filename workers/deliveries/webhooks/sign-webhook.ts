import { Webhook } from 'standardwebhooks';

/** Returns the headers that Standard Webhooks requires, with one signature per secret. */
export function signWebhook(
  deliveryId: string,
  body: string,
  secrets: readonly string[],
  at: Date,
): Record<string, string> {
  const signatures = secrets.map((secret) => new Webhook(secret).sign(deliveryId, at, body));
  return {
    'content-type': 'application/json',
    'webhook-id': deliveryId,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': signatures.join(' '),
  };
}
