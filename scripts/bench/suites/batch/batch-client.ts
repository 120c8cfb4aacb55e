import type { Target } from '../../harness/stack/vendors.ts';

/** The fields of a batch that are read. */
export interface BatchView {
  readonly id: string;
  readonly status: string;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
  readonly cost: number;
  readonly reserved: number;
  readonly usage: { readonly input_tokens: number };
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly partial_output_file_id: string | null;
}

const endStatuses: readonly string[] = ['completed', 'failed', 'expired', 'cancelled'];
export const hasEnded = ({ status }: BatchView): boolean => endStatuses.includes(status);

/** Calls the gateway as one account does. Every method throws an Error for an unexpected response. */
export class BatchClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ host, port }: Target, apiKey: string) {
    this.#url = `http://${host}:${port}/v1`;
    this.#headers = { authorization: `Bearer ${apiKey}` };
  }

  /** @returns the id of the file */
  async upload(lines: Blob): Promise<string> {
    const body = new FormData();
    body.set('file', lines, 'lines.jsonl');
    body.set('purpose', 'batch');
    return ((await this.#callJson('/files', { method: 'POST', body })) as { id: string }).id;
  }

  async create(inputFileId: string): Promise<BatchView> {
    const batch = { input_file_id: inputFileId, endpoint: '/v1/embeddings', completion_window: '24h' };
    return (await this.#callJson('/batches', this.#post(batch))) as BatchView;
  }

  async get(id: string): Promise<BatchView> {
    return (await this.#callJson(`/batches/${id}`)) as BatchView;
  }

  async cancel(id: string): Promise<BatchView> {
    return (await this.#callJson(`/batches/${id}/cancel`, { method: 'POST' })) as BatchView;
  }

  async embed(body: object): Promise<void> {
    await this.#callJson('/embeddings', this.#post(body));
  }

  /** Whether the first line of a file can be read. */
  async hasFirstLine(fileId: string): Promise<boolean> {
    const response = await this.#call(`/files/${fileId}/content`, { headers: { range: 'bytes=0-99' } });
    return (await response.text()).startsWith('{"id":');
  }

  /** Reads the `custom_id` of every line. */
  async *readIds(fileId: string): AsyncGenerator<string> {
    const response = await this.#call(`/files/${fileId}/content`);
    let head = '';
    let isInHead = true;
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      let at = 0;
      while (at < bytes.length) {
        const end = bytes.indexOf(0x0a, at);
        const stop = end === -1 ? bytes.length : end;
        // The ids are at the beginning of a line; its vectors are not read.
        if (isInHead) head += bytes.toString('latin1', at, Math.min(stop, at + headBytes));
        if (head.length >= headBytes) isInHead = false;
        at = stop + 1;
        if (end === -1) continue;
        yield /"custom_id":"([^"]*)"/.exec(head)?.[1] ?? '';
        [head, isInHead] = ['', true];
      }
    }
  }

  #post(body: object): RequestInit {
    return {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
  }

  async #callJson(path: string, init?: RequestInit): Promise<unknown> {
    return JSON.parse(await (await this.#call(path, init)).text()) as unknown;
  }

  async #call(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...(init.headers as Record<string, string> | undefined), ...this.#headers };
    const response = await fetch(`${this.#url}${path}`, { ...init, headers });
    if (response.ok) return response;
    throw new Error(`${path}: HTTP ${response.status}: ${(await response.text()).slice(0, 300)}`);
  }
}

const headBytes = 256;
