import { request } from 'node:http';
import type { Target } from './target.ts';

/** Size of a large body: more than the gateway reads before it checks the account. */
const largeChars = 100_000;

/** Bytes that never occur in UTF-8 text. */
export const brokenBytes = {
  'an invalid lead byte': [0xff],
  'a lone continuation byte': [0x80],
  'a truncated character': [0xf0, 0x9f, 0x98],
  'an overlong encoding': [0xc0, 0xaf],
  'an encoded surrogate': [0xed, 0xa0, 0xbd],
  'a code point beyond the last': [0xf4, 0x90, 0x80, 0x80],
} as const;

/** JSON escapes with unpaired surrogates. */
const brokenEscapes = {
  'a high surrogate': '\\ud83d',
  'a low surrogate': '\\uDE00',
  'two high surrogates': '\\ud83d\\ud83d\\ude00',
  'surrogates in the wrong order': '\\ude00\\ud83d',
  'separated surrogates': '\\ud83d \\ude00',
  'a surrogate after a backslash': '\\\\\\ud83d',
} as const;

export interface BrokenText {
  readonly title: string;
  /** Offset of the first invalid byte. */
  readonly offset: number;
  readonly isEscape: boolean;
  readonly status: number;
  readonly body: string;
}

/** Sends a body in pieces, so that some characters are split between two pieces. */
async function sendInPieces(
  { url, apiKey }: Target,
  pieces: readonly Buffer[],
  key?: string,
): Promise<{ status: number; body: string }> {
  return await new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${apiKey}`,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    };
    const sent = request(`${url}/v1/chat/completions`, { method: 'POST', headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    sent.on('error', reject);
    for (const piece of pieces) sent.write(piece);
    sent.end();
  });
}

/**
 * Sends chats, small and large, with invalid text. Requests that differ only in their invalid text share an
 * Idempotency-Key.
 */
export async function sendBrokenText(target: Target): Promise<BrokenText[]> {
  const seen: BrokenText[] = [];
  for (const [size, pad] of [
    ['small', ''],
    ['large', 'ж'.repeat(largeChars)],
  ] as const) {
    const before = Buffer.from(
      `{"ignored":"${pad}","model":"demo-echo","messages":[{"role":"user","content":"`,
    );
    const broken: [string, Buffer, boolean][] = [
      ...Object.entries(brokenBytes).map(([title, bytes]): [string, Buffer, boolean] => [
        title,
        Buffer.from(bytes),
        false,
      ]),
      ...Object.entries(brokenEscapes).map(([title, text]): [string, Buffer, boolean] => [
        title,
        Buffer.from(text),
        true,
      ]),
    ];
    for (const [title, bytes, isEscape] of broken) {
      const pieces = [before, bytes.subarray(0, 1), bytes.subarray(1), Buffer.from('"}]}')];
      const response = await sendInPieces(target, pieces, `broken-${size}-${isEscape}`);
      seen.push({ title: `${title}, ${size}`, offset: before.length, isEscape, ...response });
    }
  }
  return seen;
}
