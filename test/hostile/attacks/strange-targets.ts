import { sendRaw } from '../../support/raw-caller.ts';
import type { Target } from './target.ts';

/** Request targets that may confuse URL parsers, in Latin-1: one character per byte. */
const targets = [
  'http://[x/',
  'http://[x',
  'http://',
  'http:///',
  'http:/x',
  'http://a:99999999/v1/models',
  'http://%zz/v1/models',
  'ftp://[x/v1/models',
  'ftp://a:99999999/',
  'x:y',
  '//a@[x/#',
  '//a@[x/\u00a0',
  '///a@[x/#',
  '//',
  '/\\[x#',
  '/#',
  '/?',
  '/v1/models?#',
  '/v1/models#x',
  '/v1/models/\u00c3\u00a9',
  '/v1/models/\u00ff',
  '/v1/models/%',
  '/v1/models/%ff',
  '/v1/models/%00',
  '/%2e%2e/%2e%2e/etc/passwd',
  '/v1/../../etc/passwd',
  '#',
  '?',
  '*#',
  '*',
  'v1/models',
];

/** The headers of a CORS preflight. */
const preflight = 'host: gateway\r\norigin: https://page.example\r\naccess-control-request-method: POST\r\n';

/** @returns the statuses of the responses to each target; more or fewer than one is a bug */
export async function sendStrangeTargets({
  url,
}: Pick<Target, 'url'>): Promise<Map<string, readonly number[]>> {
  const seen = new Map<string, readonly number[]>();
  for (const target of targets) {
    // Without a Host the request is rejected before its target matters; preflights are answered before routing.
    for (const host of ['', 'host: gateway\r\n', preflight]) {
      for (const method of ['GET', 'OPTIONS']) {
        const bytes = Buffer.from(
          `${method} ${target} HTTP/1.1\r\n${host}connection: close\r\n\r\n`,
          'latin1',
        );
        const responses = await sendRaw(url, bytes);
        seen.set(
          `${method} ${target} ${host}`,
          responses.map(({ status }) => status),
        );
      }
    }
  }
  return seen;
}
