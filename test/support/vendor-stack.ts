import type { TestFn } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startStack, type StackOptions, type TestStack } from './stack.ts';

export interface VendorStack {
  readonly vendor: VendorSimulator;
  readonly stack: TestStack;
}

/** One simulated vendor, and one stack whose catalog uses it, for the tests of a file. */
export function useVendorStack(
  test: TestFn,
  catalogOf: (vendorUrl: string) => string,
  onStarted: (started: VendorStack) => void,
  options: Omit<StackOptions, 'catalog'> = {},
): void {
  let started: VendorStack | null = null;
  test.before(async () => {
    const vendor = await startVendorSimulator();
    started = { vendor, stack: await startStack({ ...options, catalog: catalogOf(vendor.url) }) };
    onStarted(started);
  });
  test.after.always(async () => {
    await started?.stack.close();
    await started?.vendor.close();
  });
}
