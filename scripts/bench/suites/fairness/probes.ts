import { randomUUID } from 'node:crypto';
import { makePng } from '../../../vendor-simulator/tiny-png.ts';
import { createEdit, createLargeImage, createImageChat } from './attacks.ts';
import {
  chatPath,
  createText,
  editPath,
  embeddingPath,
  send,
  toBody,
  type BenchRequest,
} from './requests.ts';
import { models, refusingHost, type FairnessTarget } from './scenario.ts';

/** A request of the account that is not part of the attack, and its expected status. */
interface Probe {
  readonly request: Omit<BenchRequest, 'apiKey'>;
  readonly status: number;
}

const replyTokens = 20;

const shortChat = (): Buffer =>
  toBody({
    model: models.chat,
    stream: true,
    max_tokens: replyTokens,
    messages: [{ role: 'user', content: createText() }],
  });

const smallImage = `data:image/png;base64,${makePng(64, 64, [20, 90, 160]).toString('base64')}`;

const chat = (headers?: Readonly<Record<string, string>>): Probe => ({
  request: { path: chatPath, body: shortChat(), ...(headers === undefined ? {} : { headers }) },
  status: 200,
});

const embedding = (input: string | readonly string[]): Probe => ({
  request: { path: embeddingPath, body: toBody({ model: models.vectors, input, encoding_format: 'base64' }) },
  status: 200,
});

const imageChat = (url: string, status: number): Probe => ({
  request: { path: chatPath, body: createImageChat([url]) },
  status,
});

const edit = (): Probe => ({
  request: { path: editPath, body: createEdit(smallImage) },
  status: 200,
});

const largeInput = (): string => `${createText()} ${'bread '.repeat(650)}`;

export const probes: Readonly<Record<string, () => Probe>> = {
  slots: () => chat(),
  dimensions: () => embedding(createText()),
  images: () => imageChat(smallImage, 200),
  links: () => imageChat(`https://${refusingHost}/${randomUUID()}.png`, 422),
  replays: () => chat(),
  'slow-bodies': () => embedding(Array.from({ length: 256 }, largeInput)),
  'penniless-bodies': () => chat(),
  'kept-streams': () => chat({ 'idempotency-key': randomUUID() }),
  'merged-embeddings': () => embedding(createText()),
  'job-lists': () => chat(),
  'job-lists-of-three': () => chat(),
  'request-logs': () => chat(),
  'request-logs-of-three': () => chat(),
  queries: () => chat(),
  preferences: () => chat(),
  frames: () => edit(),
  'big-webp': () => edit(),
};

/** @throws Error that describes an unexpected response */
export async function sendProbe(scenario: string, target: FairnessTarget, timeoutMs: number): Promise<void> {
  const { request, status } = probes[scenario]!();
  const response = await send(
    target,
    { ...request, apiKey: target.keys.innocent },
    AbortSignal.timeout(timeoutMs),
  );
  const isBroken = response.text.includes('"error"') && status === 200;
  if (response.status === status && !isBroken) return;
  const code = /"code": ?"(\w+)"/.exec(response.text)?.[1];
  throw new Error(`${response.status} ${code ?? ''}`.trim());
}

/** Measures a single request of the attacker, for the one scenario without a known duration. */
export async function measureAttackersCall(target: FairnessTarget): Promise<number> {
  const body = createImageChat([await createLargeImage(255)]);
  const request = { path: chatPath, apiKey: target.keys.attacker, body };
  const startedAtMs = performance.now();
  await send(target, request, AbortSignal.timeout(30_000));
  return performance.now() - startedAtMs;
}
