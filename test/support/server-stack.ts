import type { TestFn } from 'ava';
import { serverNames, type ServerName } from '../../scripts/vendor-simulator/like/personalities.ts';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startStack, type TestStack } from './stack.ts';

/** An upstream whose simulator is like a real server with OpenAI's API. */
export interface ServerUpstream {
  /** The name of the upstream, and the beginning of the ids of its models. */
  readonly name: string;
  readonly like: ServerName;
  /** Whether the catalog says which profile it has. Otherwise its address or the model's name decides. */
  readonly hasProfile: boolean;
  /** The beginning of its models' names. */
  readonly family: string;
}

/** Each server with its profile, and two that are found without. */
export const serverUpstreams: readonly ServerUpstream[] = [
  ...serverNames.map((like) => ({ name: like, like, hasProfile: true, family: 'sim' })),
  { name: 'unnamed-vllm', like: 'vllm', hasProfile: false, family: 'Qwen/Qwen3-8B' },
  { name: 'unnamed-mistral', like: 'mistral', hasProfile: false, family: 'mistralai/Magistral-Small' },
];

/** One simulator for each server, and one stack whose catalog uses them all, for the tests of a file. */
export class ServerStack {
  readonly #vendors = new Map<ServerName, VendorSimulator>();
  #stack: TestStack | null = null;

  readonly #fields: string;

  /**
   * @param modelsOf lines of YAML: the models of an upstream
   * @param fields further fields of each upstream, in YAML
   */
  constructor(test: TestFn, modelsOf: (upstream: ServerUpstream) => readonly string[], fields = '') {
    this.#fields = fields;
    test.before(async () => {
      for (const like of serverNames)
        this.#vendors.set(like, await startVendorSimulator({ like, logCapacity: 10_000 }));
      const upstreams = serverUpstreams.map((upstream) => this.#writeUpstream(upstream));
      const models = serverUpstreams.flatMap(modelsOf);
      this.#stack = await startStack({
        catalog: ['upstreams:', ...upstreams, 'models:', ...models].join('\n'),
      });
    });
    test.after.always(async () => {
      await this.#stack?.close();
      await Promise.all([...this.#vendors.values()].map((vendor) => vendor.close()));
    });
  }

  get stack(): TestStack {
    return this.#stack!;
  }

  vendor(like: ServerName): VendorSimulator {
    return this.#vendors.get(like)!;
  }

  /** The requests that the server received and that contain this text. */
  sentTo({ like }: Pick<ServerUpstream, 'like'>, text: string): readonly LoggedRequest[] {
    return this.vendor(like).requests.entries.filter((entry) => JSON.stringify(entry.body).includes(text));
  }

  #writeUpstream({ name, like, hasProfile }: ServerUpstream): string {
    const profile = hasProfile ? `dialect: ${like}, ` : '';
    return `  ${name}: { kind: openai, ${profile}baseUrl: "${this.vendor(like).url}/v1", apiKeys: [sk-vendor-key-0123456789], ${this.#fields} }`;
  }
}
