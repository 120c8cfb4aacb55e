import type { ExecutionContext, TestFn } from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { findRow, readAmountCharged, waitForNoReservation } from './observe.ts';
import { chatWithUsage, startScriptedVendor, type ScriptedVendor } from './scripted-vendor.ts';
import { startStack, type TestAccount, type TestStack } from './stack.ts';

export const vendorKey = 'sk-vendor-key-0123456789';
/** In roubles per million tokens; odd numbers, so that a wrong sum is noticed. */
export const oddPrice = 'pricing: { prompt: 13.37, completion: 42.42 }';
export const chatPath = '/v1/chat/completions';
export const hello = 'hello there world';
/** The gateway's own token count: three words, four for the message, three to start the reply. */
export const helloTokens = 10;
/** `hello` and its echo at `oddPrice`: 3 × 13.37 + 5 × 42.42 roubles per million. */
export const helloNano = 252_210n;

export interface ToolCall {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ChatAnswer {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly finish_reason: string;
    readonly message: {
      readonly role: string;
      readonly content: string | null;
      readonly tool_calls?: readonly ToolCall[];
      readonly reasoning_content?: string;
    };
  }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
    readonly total_time: number;
    readonly cost_request: number;
    readonly free_request: boolean | null;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
  readonly error: { readonly code: string; readonly message: string };
}

export interface ChatExchange {
  readonly status: number;
  readonly answer: ChatAnswer;
  readonly requestId: string;
  readonly response: Response;
}

interface ModelSettings {
  /** YAML; defaults to `oddPrice`. */
  readonly pricing?: string;
  /** Other fields of the model in YAML. */
  readonly fields?: string;
  /** A name returned by `addUpstream`; defaults to the simulated vendor. */
  readonly upstream?: string;
  /** Other fields of the model's route in YAML. */
  readonly route?: string;
}

/**
 * One stack for the chats of a file, with a simulated vendor that can fail in every way that vendors do. Tests add
 * their models at module level, before ava starts to run the tests.
 */
export class Chats {
  readonly #upstreams: string[] = [];
  readonly #models: string[] = [];
  #texts = 0;
  #vendor: VendorSimulator | null = null;
  #scripted: ScriptedVendor | null = null;
  #stack: TestStack | null = null;

  constructor(test: TestFn) {
    test.before(async () => {
      this.#vendor = await startVendorSimulator({ logCapacity: 10_000 });
      this.#scripted = await startScriptedVendor(readScript);
      this.#stack = await startStack({ catalog: this.#writeCatalog(this.#vendor.url, this.#scripted.url) });
    });
    test.after.always(async () => {
      await this.#stack?.close();
      await Promise.all([this.#vendor?.close(), this.#scripted?.close()]);
    });
  }

  get stack(): TestStack {
    return this.#stack!;
  }

  get vendor(): VendorSimulator {
    return this.#vendor!;
  }

  /**
   * @param fields fields of the upstream in YAML
   * @param apiKeys API keys of the upstream in YAML
   * @returns the upstream's name
   */
  addUpstream(fields: string, apiKeys = `[${vendorKey}]`): string {
    const name = `upstream-${this.#upstreams.length + 1}`;
    this.#upstreams.push(`  ${name}: { kind: openai, baseUrl: "VENDOR/v1", apiKeys: ${apiKeys}, ${fields} }`);
    return name;
  }

  /** @returns the id of a model that the simulated vendor serves as `vendorModel` */
  addModel(vendorModel: string, settings: ModelSettings = {}): string {
    const { upstream = 'vendor', route = '' } = settings;
    return this.#add(`{ upstream: ${upstream}, model: "${vendorModel}", ${route} }`, settings);
  }

  /** A model with two routes: `vendorModel`, which is nearly always tried first, and one that works. */
  addModelWithSecond(vendorModel: string): string {
    const first = `{ upstream: vendor, model: "${vendorModel}", weight: 100000 }`;
    return this.#add(`${first}, { upstream: vendor, model: gpt-sim, weight: 0.001 }`, {});
  }

  /** A model whose vendor reports the usage that the prompt contains as JSON; see `usageOf`. */
  addScripted(settings: ModelSettings = {}): string {
    return this.#add('{ upstream: scripted, model: scripted }', settings);
  }

  send(account: TestAccount, model: string, more: object = {}, text = hello): Promise<Response> {
    const body = { model, messages: [{ role: 'user', content: text }], ...more };
    return this.stack.post(chatPath, account.apiKey, body);
  }

  async ask(account: TestAccount, model: string, more: object = {}, text = hello): Promise<ChatExchange> {
    const response = await this.send(account, model, more, text);
    const answer = (await response.json()) as ChatAnswer;
    const requestId = response.headers.get('x-request-id')!;
    return { status: response.status, answer, requestId, response };
  }

  /** Asserts that exactly this cost is logged and debited, and that no reservation remains. */
  async costs(
    t: ExecutionContext,
    account: TestAccount,
    requestId: string,
    expectedNano: bigint,
    initialRub = '100',
  ): Promise<void> {
    const row = await findRow(this.stack, requestId);
    t.is(row.costNano, expectedNano);
    t.is(await readAmountCharged(this.stack, account.id, initialRub), expectedNano);
    await waitForNoReservation(this.stack, account.id);
  }

  /** A unique prompt, by which a test can find its call at the vendor. */
  uniqueText(): string {
    this.#texts += 1;
    return `prompt number ${this.#texts} of chat`;
  }

  /** The requests that the vendor received and that contain this text. */
  sentTo(text: string): readonly LoggedRequest[] {
    return this.vendor.requests.entries.filter((entry) => JSON.stringify(entry.body).includes(text));
  }

  #add(routes: string, { pricing = oddPrice, fields = '' }: ModelSettings): string {
    const id = `chat-${this.#models.length + 1}`;
    this.#models.push(
      `  - { id: ${id}, type: chat, context: 8192, ${pricing}, ${fields} routes: [${routes}] }`,
    );
    return id;
  }

  #writeCatalog(vendorUrl: string, scriptedUrl: string): string {
    return [
      'upstreams:',
      `  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [${vendorKey}] }`,
      `  scripted: { kind: openai, baseUrl: "${scriptedUrl}/v1" }`,
      ...this.#upstreams.map((line) => line.replace('VENDOR', vendorUrl)),
      'models:',
      ...this.#models,
    ].join('\n');
  }
}

const readScript = (body: Readonly<Record<string, unknown>>): object =>
  chatWithUsage(JSON.parse((body['messages'] as { content: string }[])[0]!.content) as object);

/** A prompt that makes the vendor report this usage. */
export const usageOf = (prompt: number, completion: number, details: object = {}): string =>
  JSON.stringify({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: details,
  });
