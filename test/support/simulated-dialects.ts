import type { ExecutionContext } from 'ava';

import {
  startVendorSimulator,
  type VendorSimulator,
  type VendorSimulatorOptions,
} from '../../scripts/vendor-simulator/simulator.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface CallOptions {
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Clients that send raw requests to a simulator, because a client library would hide the tested details. */
export interface DialectClients {
  readonly simulator: VendorSimulator;
  readonly askOpenAi: (body: Json, options?: CallOptions & { readonly path?: string }) => Promise<Response>;
  readonly askAnthropic: (body: Json, options?: CallOptions) => Promise<Response>;
  /** @param action for example `streamGenerateContent?alt=sse` */
  readonly askGemini: (
    model: string,
    body: Json,
    options?: CallOptions & { readonly action?: string },
  ) => Promise<Response>;
}

const apiKey = 'sk-sim-0123456789';

export async function startDialectClients(
  t: ExecutionContext,
  options: VendorSimulatorOptions = {},
): Promise<DialectClients> {
  const simulator = await startVendorSimulator(options);
  t.teardown(() => simulator.close());
  const post = (path: string, body: Json, headers: Readonly<Record<string, string>>): Promise<Response> =>
    fetch(`${simulator.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const withKey = (
    name: string,
    prefix: string,
    { key = apiKey, headers = {} }: CallOptions,
  ): Record<string, string> => ({
    ...(key === null ? {} : { [name]: `${prefix}${key}` }),
    ...headers,
  });
  return {
    simulator,
    askOpenAi: (body, { path = '/v1/chat/completions', ...ask } = {}) =>
      post(path, { model: 'gpt-sim', ...body }, withKey('authorization', 'Bearer ', ask)),
    askAnthropic: (body, ask = {}) =>
      post(
        '/v1/messages',
        { model: 'claude-sim', max_tokens: 4096, ...body },
        { 'anthropic-version': '2023-06-01', ...withKey('x-api-key', '', ask) },
      ),
    askGemini: (model, body, { action = 'generateContent', ...ask } = {}) =>
      post(`/v1beta/models/${model}:${action}`, body, withKey('x-goog-api-key', '', ask)),
  };
}

export async function readJson(response: Response): Promise<Json> {
  return (await response.json()) as Json;
}

/** The values of a stream's `data:` lines, in order, without `[DONE]`. */
export async function readEvents(response: Response): Promise<readonly Json[]> {
  const text = await response.text();
  return text
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]')
    .map((line) => JSON.parse(line.slice('data: '.length)) as Json);
}

/** The value at a path of names and indices; undefined if there is none. */
export function dig(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === 'object' && inner !== null
        ? (inner as Readonly<Record<string | number, unknown>>)[name]
        : undefined,
    value,
  );
}

/** The text at a path; empty if there is none. */
export function digText(value: unknown, ...path: readonly (string | number)[]): string {
  const found = dig(value, ...path);
  return typeof found === 'string' ? found : '';
}

export function digList(value: unknown, ...path: readonly (string | number)[]): readonly Json[] {
  const found = dig(value, ...path);
  return Array.isArray(found) ? (found as Json[]) : [];
}

/** Combines an Anthropic stream into one message: deltas are appended by index, usage is overwritten. */
export function mergeAnthropicEvents(events: readonly Json[]): Json {
  let message: Record<string, unknown> = {};
  const content: Record<string, unknown>[] = [];
  const inputs: string[] = [];
  for (const event of events) {
    const index = Number(event['index']);
    const delta = (event['delta'] ?? {}) as Json;
    const block = content[index] ?? {};
    switch (event['type']) {
      case 'message_start':
        message = { ...(event['message'] as Json) };
        break;
      case 'content_block_start':
        content[index] = { ...(event['content_block'] as Json) };
        break;
      case 'content_block_delta':
        if (delta['type'] === 'input_json_delta') {
          inputs[index] = `${inputs[index] ?? ''}${digText(delta, 'partial_json')}`;
        } else if (delta['type'] === 'citations_delta') {
          block['citations'] = [...digList(block, 'citations'), delta['citation']];
        } else {
          for (const name of ['text', 'thinking', 'signature'].filter((name) => name in delta)) {
            block[name] = `${digText(block, name)}${digText(delta, name)}`;
          }
        }
        break;
      case 'content_block_stop':
        if (inputs[index] !== undefined) {
          block['input'] = JSON.parse(inputs[index] === '' ? '{}' : inputs[index]);
        }
        break;
      case 'message_delta':
        message = {
          ...message,
          ...delta,
          usage: { ...(message['usage'] as Json), ...(event['usage'] as Json | undefined) },
        };
        break;
      default:
        break;
    }
  }
  return { ...message, content };
}
