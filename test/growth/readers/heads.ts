import { findCallerAddress } from '../../../api/http/callers/caller-address.ts';
import { callerNetwork } from '../../../api/http/callers/caller-network.ts';
import { findOrigin, findRequestLine, withoutQuery } from '../../../api/http/connections/parser-errors.ts';
import { parseRange } from '../../../api/endpoints/files/byte-range.ts';
import { parseEventId } from '../../../api/endpoints/jobs/present-job-events.ts';
import { checkPreconditions, isRangeCurrent } from '../../../api/endpoints/files/preconditions.ts';
import { suggestPath } from '../../../api/http/responses/unserved-paths.ts';
import { normalizeTarget } from '../../../api/http/request/normalize-target.ts';
import { readQueryString } from '../../../api/http/request/read-query-string.ts';
import { hashRefillCode, isApiKey } from '../../../shared/accounts/credentials.ts';
import { readStreamEventId } from '../../../shared/contract/event-id.ts';
import { readOnDisconnect } from '../../../shared/contract/on-disconnect.ts';
import { cleanText, hasSecret, maybeBeginsSecret } from '../../../shared/contract/mask-secrets.ts';
import { isPlainText } from '../../../shared/contract/plain-text.ts';
import { translateOperatorReason } from '../../../shared/admin/operator-reasons.ts';
import { translateReason } from '../../../shared/contract/reason-texts.ts';
import { readCancelAfter } from '../../../api/contract/cancel-after.ts';
import { readPreferences, readRequestTimeout } from '../../../api/contract/prefer.ts';
import { checkWebhookUrl, readWebhookEvents } from '../../../api/contract/webhook-url.ts';
import { readTypedCode, trimTyped } from '../../../shared/encoding/typed-text.ts';
import { parseAddressRange } from '../../../shared/accounts/address-ranges.ts';
import { normalizeEmail } from '../../../shared/encoding/email-address.ts';
import { normalizeTimeZone } from '../../../api/account-area/time-zone.ts';
import { describeUserAgent } from '../../../shared/account-area/user-agent.ts';
import { readsText, type Reader } from '../reader.ts';

const id = '019aa64f-d5de-7c5b-9a51-0c2f7e8d4b16';
const validators = { etag: '"abc"', lastModifiedMs: 0 };
const packet = (text: string) => ({ name: '', message: '', rawPacket: Buffer.from(text, 'latin1') });

/** Readers of request lines, headers and short fields. */
export const headReaders: readonly Reader[] = [
  readsText('target', normalizeTarget, {
    tokens: ['%41', '%7e', '/', '?', '#', '\u00e9', 'http://'],
    frames: [{ head: '/v1/' }, { head: 'http://a/' }, { head: '/?' }],
  }),
  readsText('query', readQueryString, { tokens: ['a&', 'a=1&', '%zz', '&', '='] }),
  readsText('path that is not served', suggestPath, {
    tokens: ['/', 'engines/', 'completions', ':streamGenerateContent'],
    frames: [{ head: '/v1/engines/' }, { head: '/v1/' }],
  }),
  readsText('message of an error', translateReason, {
    tokens: ['" does not exist. Did you mean "', ' (and 2 more)', ': ', 'is required', '"', 'a.'],
    frames: [{ head: 'The model "' }, { head: 'Line ', tail: 'Each line needs its own.' }],
  }),
  readsText('reason of operators', translateOperatorReason, {
    tokens: ['; ', ': ', 'its key is on cooldown for ', ' s: ', 'refused with ', 'a'],
    frames: [{ head: 'for the accounts whose calls were refused: ' }],
  }),
  readsText('Prefer', readPreferences, { tokens: ['"', '\\"', ',', ';', '=', 'respond-async', 'wait=1'] }),
  readsText('Cancel-After', readCancelAfter, { tokens: ['1', 's', 'h', ' '] }),
  readsText('X-Webhook-Events', readWebhookEvents, { tokens: [',', 'ended,', ' '] }),
  readsText('X-Request-Timeout-Ms', readRequestTimeout),
  readsText('X-On-Disconnect', readOnDisconnect),
  readsText('X-Webhook-Url', checkWebhookUrl, {
    tokens: ['.', '/', '@', 'xn--', '%41', 'é'],
    frames: [{ head: 'https://' }, { head: 'https://example.com/' }],
  }),
  readsText('X-Forwarded-For', (text) => findCallerAddress('127.0.0.1', text), {
    tokens: [':', '[', ']', '1.', '::', '%', ','],
  }),
  readsText('address', callerNetwork, { tokens: [':', '0:', '1.', '%'] }),
  readsText('If-None-Match', (text) => checkPreconditions({ 'if-none-match': text }, validators), {
    tokens: ['"a", ', 'W/"a",', ' ', ','],
  }),
  readsText('If-Match', (text) => checkPreconditions({ 'if-match': text }, validators), {
    tokens: ['"a", ', ' ', ','],
  }),
  readsText('If-Modified-Since', (text) => checkPreconditions({ 'if-modified-since': text }, validators), {
    tokens: ['Mon, ', '01 Jan ', '00:00:00 ', '('],
    frames: [{ head: 'Mon, ' }],
  }),
  readsText('If-Range', (text) => isRangeCurrent({ 'if-range': text }, validators), {
    frames: [{ head: 'Mon, ' }],
  }),
  readsText('Range', parseRange, { tokens: ['0-1,', '-', '9', ' '], frames: [{ head: 'bytes=' }] }),
  readsText('Last-Event-ID of a job', (text) => parseEventId(text, id), { tokens: ['1.', 'a'] }),
  readsText('Last-Event-ID of a stream', (text) => readStreamEventId(text, id), { tokens: ['1.', 'a'] }),
  readsText('User-Agent', describeUserAgent, {
    tokens: ['Mozilla/5.0 ', '(', ')', 'Version/', 'Android ', 'like '],
    frames: [{ head: 'Mozilla/5.0 (' }],
  }),
  readsText('request line of a broken request', (text) => findRequestLine(packet(text)), {
    maxSize: 64 * 1024,
    tokens: ['GET ', ' ', '/'],
    frames: [{ head: 'GET ' }],
  }),
  readsText('Origin of a broken request', (text) => findOrigin(packet(text)), {
    maxSize: 64 * 1024,
    tokens: ['origin:', '\r\n', ' ', '\t'],
    frames: [{ head: 'origin:' }],
  }),
  readsText('path of a broken request', withoutQuery, { tokens: ['?', '#'] }),
  readsText('API key', isApiKey, { frames: [{ head: 'mg-' }] }),
  readsText('refill code', hashRefillCode, { tokens: ['-', ' '] }),
  readsText('typed code', readTypedCode, {
    maxSize: 8_000,
    tokens: ['-', '\u2013', '\u200b', ' ', '\uff12', '7'],
  }),
  readsText('typed address', trimTyped, { maxSize: 8_000, tokens: ['\u200b', ' ', '\ufeff', 'a'] }),
  readsText('e-mail address', normalizeEmail, {
    tokens: ['a.', '@', '.', '。', 'xn--'],
    frames: [{ head: 'a@' }],
  }),
  readsText('address or network', parseAddressRange, { tokens: ['1.', 'f:', '::', '/1'] }),
  readsText('time zone', normalizeTimeZone, { tokens: ['Europe/', '/'] }),
  readsText('text with secrets', hasSecret, { tokens: ['mg-', 'ABCD', '-', '2345', ' – '] }),
  readsText('text with parts of secrets', maybeBeginsSecret, {
    tokens: ['mga-', 'ABCD', 'АВЕК', '2345', '-', ' – ', '  '],
    frames: [{ head: '2345-ABCD' }, { head: '2345 ABCD 2345 ' }],
  }),
  readsText('reason of a change', cleanText, { tokens: ['mg-', 'ABCD', '2345', ' – ', '  '] }),
  readsText('line of text', isPlainText, { tokens: ['\u200b', '\u202e', '\u3000'] }),
];
