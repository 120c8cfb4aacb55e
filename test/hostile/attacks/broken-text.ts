import { request } from 'node:http';
import type { Target } from './target.ts';

/** Beyond what is read before the account is looked at. */
const largeChars = 100_000;

/** Bytes that no text in UTF-8 has. */
export const brokenBytes = {
  'a byte that begins nothing': [0xff],
  'a continuation by itself': [0x80],
  'a character that is cut': [0xf0, 0x9f, 0x98],
  'a character that is written too long': [0xc0, 0xaf],
  'half of a surrogate pair': [0xed, 0xa0, 0xbd],
  'a character beyond the last': [0xf4, 0x90, 0x80, 0x80],
} as const;

/** Escapes of JSON that are halves of surrogate pairs. */
const brokenEscapes = {
  'a first half': '\\ud83d',
  'a second half': '\\uDE00',
  'a first half twice': '\\ud83d\\ud83d\\ude00',
  'halves the wrong way round': '\\ude00\\ud83d',
  'halves apart': '\\ud83d \\ude00',
  'a half behind a backslash': '\\\\\\ud83d',
} as const;

export interface BrokenText {
  readonly title: string;
  /** Of the first byte that is wrong. */
  readonly offset: number;
  readonly isEscape: boolean;
  readonly status: number;
  readonly body: string;
}

/** Sends a body in pieces, so that its characters are torn where they are sent. */
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
    const sent = request(`${url}/v1/chat/completions`, { method: 'POST', headers }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    sent.on('error', reject);
    for (const piece of pieces) sent.write(piece);
    sent.end();
  });
}

/** Sends chats, small and large, whose text is none. One Idempotency-Key serves for all that differ in nothing else. */
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
      const answer = await sendInPieces(target, pieces, `broken-${size}-${isEscape}`);
      seen.push({ title: `${title}, ${size}`, offset: before.length, isEscape, ...answer });
    }
  }
  return seen;
}
