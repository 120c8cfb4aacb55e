import type { Receipt } from '../crash/paid-load.ts';
import { toNano } from '../support/observe.ts';
import { parseSse } from '../support/sse-events.ts';
import type { TestAccount } from '../support/stack.ts';

/** The result of a chat as its caller sees it. */
export interface ChatResult {
  /** `ok`, an error code, `cut` if the connection broke, or `hung` if nothing arrived in time. */
  readonly outcome: string;
  readonly text: string;
  /** Its cost, if the caller was billed. */
  readonly receipt: Receipt | null;
}

/** Far longer than any call can take: a call that has not ended by then counts as lost. */
const hangTimeoutMs = 45_000;

interface WholeChat {
  readonly choices: readonly { readonly message: { readonly content: string } }[];
  readonly usage: Usage;
}

interface Usage {
  readonly cost_request: number;
}

/** Sends a chat and reads the whole response. Never rejects: failures are outcomes, too. */
export async function callChat(
  url: string,
  account: TestAccount,
  model: string,
  content: string,
  { stream = true, timeoutMs = hangTimeoutMs } = {},
): Promise<ChatResult> {
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
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    const receiptOf = ({ cost_request }: Usage): Receipt => ({
      requestId: response.headers.get('x-request-id') ?? '',
      accountId: account.id,
      costNano: toNano(cost_request),
      free: false,
    });
    return response.status === 200 ? readResult(text, stream, receiptOf) : failure(readCode(text));
  } catch (error) {
    return failure((error as Error).name === 'TimeoutError' ? 'hung' : 'cut');
  }
}

const failure = (outcome: string, text = ''): ChatResult => ({ outcome, text, receipt: null });

const readCode = (text: string): string => (JSON.parse(text) as { error: { code: string } }).error.code;

function readResult(body: string, isStream: boolean, receiptOf: (usage: Usage) => Receipt): ChatResult {
  if (!isStream) {
    const { choices, usage } = JSON.parse(body) as WholeChat;
    return { outcome: 'ok', text: choices[0]!.message.content, receipt: receiptOf(usage) };
  }
  const { events, isDone, text } = parseSse(body);
  if (!isDone) return failure(events.at(-1)?.error?.code ?? 'cut', text);
  return { outcome: 'ok', text, receipt: receiptOf(events.at(-1)!.usage as unknown as Usage) };
}

/** The simulated vendor's reply. */
const echoOf = (content: string): string => `You said: ${content}`;

export const isComplete = ({ outcome, text }: ChatResult, content: string): boolean =>
  outcome === 'ok' && text === echoOf(content);

/** A short description of a result, by its number and without its whole text. */
export const describeResult = ({ outcome, text }: ChatResult, i: number): string =>
  `${i}: ${outcome} ${text.length} characters, ${text.slice(-40)}`;

/** The number of results by outcome, for an assertion that shows them all. */
export function countOutcomes(results: readonly ChatResult[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
