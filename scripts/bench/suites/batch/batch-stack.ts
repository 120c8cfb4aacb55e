import type { Programs } from '../../harness/programs.ts';
import { embeddingModel, openaiUpstream } from '../../harness/stack/catalog.ts';
import { startStack, type Stack } from '../../harness/stack/stack.ts';
import { startVendors, type Vendor } from '../../harness/stack/vendors.ts';
import type { Settings } from '../../harness/suite.ts';
import type { BatchScenario } from './batch-plan.ts';

export interface BatchStack extends Stack {
  readonly vendor: Vendor;
}

export const batchModel = 'bench-embedding';

/** The whole product, and a vendor of this pace. The last account is the innocent caller's. */
export async function startBatchStack(
  programs: Programs,
  settings: Settings,
  { pace, accounts }: BatchScenario,
): Promise<BatchStack> {
  const vendorArguments = [
    ['--vectors', 'fast'],
    ['--per-call-ms', String(pace.perCallMs)],
    ['--per-input-ms', String(pace.perInputMs)],
    ['--max-concurrency', String(pace.calls)],
  ].flat();
  const { steady: vendor } = await startVendors(programs, 'simulator', { steady: vendorArguments });
  const model = { id: batchModel, upstream: 'steady', model: 'text-embedding-sim' };
  const catalog = {
    upstreams: { steady: openaiUpstream(vendor, pace.calls) },
    models: [embeddingModel(model)],
  };
  const stack = await startStack(programs, { settings, catalog, accountCount: accounts + 1 });
  return { ...stack, vendor };
}
