import type { TestFn } from 'ava';
import { Decoders } from '../../workers/media/decoders.ts';

/** Creates the decoders of a test file, and ends their processes after its tests. */
export function useDecoders(test: TestFn, log = { error: (): void => undefined }): Decoders {
  const decoders = new Decoders(log);
  test.after.always(() => decoders.close());
  return decoders;
}
