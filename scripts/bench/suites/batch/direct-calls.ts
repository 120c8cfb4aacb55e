import { fullCall, type DirectRun, type VendorPace } from './batch-plan.ts';
import { sampleCpu, compareCpu } from '../../harness/clocks/cpu-clock.ts';
import type { Vendor } from '../../harness/stack/vendors.ts';

export interface DirectOptions {
  readonly vendor: Vendor;
  readonly pace: VendorPace;
  readonly inputs: readonly string[];
  readonly format: 'base64' | 'float';
  readonly dimensions: number;
}

/**
 * Sends inputs to the vendor itself in full calls, as many at a time as the vendor takes, and reads the vectors.
 * @throws Error for a wrong response
 */
export async function runDirectly(options: DirectOptions): Promise<DirectRun> {
  const { vendor, pace, inputs } = options;
  const calls: string[][] = [];
  for (let from = 0; from < inputs.length; from += fullCall) calls.push(inputs.slice(from, from + fullCall));
  const pids = { load: process.pid, vendor: vendor.pid };
  const before = sampleCpu(pids);
  let next = 0;
  await Promise.all(
    Array.from({ length: pace.calls }, async () => {
      while (next < calls.length) await call(options, calls[next++]!);
    }),
  );
  const cpu = compareCpu(before, sampleCpu(pids));
  return { measuredMs: cpu.measuredMs, calls: calls.length, cpu };
}

interface EmbeddingsResponse {
  readonly data: readonly { readonly embedding: string | readonly number[] }[];
}

async function call({ vendor, format, dimensions }: DirectOptions, input: readonly string[]): Promise<void> {
  const response = await fetch(`${vendor.url}/v1/embeddings`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${vendor.target.apiKeys[0]}` },
    body: JSON.stringify({ model: 'text-embedding-sim', input, encoding_format: format, dimensions }),
  });
  if (!response.ok) throw new Error(`the vendor: HTTP ${response.status}`);
  const { data } = JSON.parse(await response.text()) as EmbeddingsResponse;
  const isRight = ({ embedding }: EmbeddingsResponse['data'][number]): boolean =>
    typeof embedding === 'string'
      ? Buffer.from(embedding, 'base64').length === dimensions * 4
      : embedding.length === dimensions;
  if (data.length !== input.length || !data.every(isRight)) throw new Error('the vendor sent wrong vectors');
}
