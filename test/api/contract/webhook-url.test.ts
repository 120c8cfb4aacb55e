import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import { checkWebhookUrl, readWebhookEvents } from '../../../api/contract/webhook-url.ts';

test('a public https URL is accepted and normalized', (t) => {
  t.is(checkWebhookUrl('https://example.com/hook?a=1'), 'https://example.com/hook?a=1');
  t.is(checkWebhookUrl('HTTPS://Example.com:443'), 'https://example.com/');
  t.is(checkWebhookUrl('https://8.8.8.8/'), 'https://8.8.8.8/');
});

const rejectedUrls: Record<string, RegExp> = {
  '': /cannot be parsed/,
  '/hook': /cannot be parsed/,
  'http://example.com/': /is not https/,
  'https://user@example.com/': /a user name or a password/,
  'https://example.com:8443/': /a port other than 443/,
  'https://example.com/#here': /a fragment/,
  'https://127.0.0.1/': /that is not on the public internet/,
  'https://0x7f.1/': /that is not on the public internet/,
  'https://[::ffff:10.0.0.1]/': /that is not on the public internet/,
  'https://169.254.169.254/latest': /that is not on the public internet/,
  'https://localhost/hook': /that is not on the public internet/,
  'https://api.localhost./': /that is not on the public internet/,
  'https://intranet/': /that is not on the public internet/,
  'https://hooks.internal/': /that is not on the public internet/,
  [`https://example.com/${'a'.repeat(1_981)}`]: /longer than 2000 characters/,
  [`https://example.com/${'é'.repeat(500)}`]: /longer than 2000 characters when percent-encoded/,
};

for (const [url, reason] of Object.entries(rejectedUrls)) {
  test(`"${url.slice(0, 40)}" is rejected, and the error says why and where`, (t) => {
    const error = t.throws(() => checkWebhookUrl(url), { instanceOf: AppError, message: reason });
    t.is(error?.code, 'unsafe_url');
    t.is(error?.status, 422);
    t.deepEqual(error?.issues[0]?.loc, ['header', 'X-Webhook-Url']);
  });
}

test('X-Webhook-Events is a list of known events in any case and order', (t) => {
  t.deepEqual(readWebhookEvents('ended'), ['ended']);
  t.deepEqual(readWebhookEvents('Ended , STARTED'), ['started', 'ended']);
  t.deepEqual(readWebhookEvents('started,started'), ['started']);
  for (const header of ['', 'ended,', 'finished', 'started ended', 'started; ended', ','.repeat(9_000)]) {
    const error = t.throws<AppError>(() => readWebhookEvents(header), undefined, header.slice(0, 20));
    t.is(error.code, 'validation_failed');
    t.deepEqual(error.issues[0]?.loc, ['header', 'X-Webhook-Events']);
    t.regex(error.message, /started, ended/);
  }
});
