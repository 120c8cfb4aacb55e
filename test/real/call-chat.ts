import type { Receipt } from '../crash/paid-load.ts';
import { toNano } from '../support/observe.ts';
import { parseSse } from '../support/sse-events.ts';
import type { TestAccount } from '../support/stack.ts';

/** How a chat ended for its caller. */
export interface ChatEnd {
  /** `ok`, the code of an error, `cut` where the connection broke, `hung` where nothing came in time. */
  readonly outcome: string;
  readonly text: string;
  /** What it cost, where its caller was told so. */
  readonly receipt: Receipt | null;
}

/** Far above what any call may take: one that has no end by then has been forgotten. */
const hungAfterMs = 45_000;

interface WholeChat {
  readonly choices: readonly { readonly message: { readonly content: string } }[];
  readonly usage: Usage;
}

interface Usage {
  readonly cost_request: number;
}

/** Sends a chat and reads it to its end, whatever that is. */
export async function callChat(
  url: string,
  account: TestAccount,
  model: string,
  content: string,
  { stream = true, boundMs = hungAfterMs } = {},
): Promise<ChatEnd> {
  const body = {
    model,
    messages: [{ role: 'user', content }],
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  };
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(boundMs),
    });
    const text = await response.text();
    const receiptOf = ({ cost_request }: Usage): Receipt => ({
      requestId: response.headers.get('x-request-id') ?? '',
      accountId: account.id,
      costNano: toNano(cost_request),
      free: false,
    });
    return response.status === 200 ? readEnd(text, stream, receiptOf) : failed(readCode(text));
  } catch (error) {
    return failed((error as Error).name === 'TimeoutError' ? 'hung' : 'cut');
  }
}

const failed = (outcome: string, text = ''): ChatEnd => ({ outcome, text, receipt: null });

const readCode = (text: string): string => (JSON.parse(text) as { error: { code: string } }).error.code;

function readEnd(body: string, isStream: boolean, receiptOf: (usage: Usage) => Receipt): ChatEnd {
  if (!isStream) {
    const { choices, usage } = JSON.parse(body) as WholeChat;
    return { outcome: 'ok', text: choices[0]!.message.content, receipt: receiptOf(usage) };
  }
  const { events, isDone, text } = parseSse(body);
  if (!isDone) return failed(events.at(-1)?.error?.code ?? 'cut', text);
  return { outcome: 'ok', text, receipt: receiptOf(events.at(-1)!.usage as unknown as Usage) };
}

/** What the simulated vendor answers. */
const echoOf = (content: string): string => `You said: ${content}`;

export const isWhole = ({ outcome, text }: ChatEnd, content: string): boolean =>
  outcome === 'ok' && text === echoOf(content);

/** Tells one of many apart, without all that it said. */
export const describeEnd = ({ outcome, text }: ChatEnd, i: number): string =>
  `${i}: ${outcome} ${text.length} characters, ${text.slice(-40)}`;

/** How many ended in which way, for an assertion that shows all of it. */
export function countOutcomes(ends: readonly ChatEnd[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of ends) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
