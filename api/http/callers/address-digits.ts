import { writeAddress } from '../../../shared/accounts/address-ranges.ts';
import { createRecentEntries } from '../../../shared/platform/runtime/recent-entries.ts';

const recent = createRecentEntries<string, string>(10_000);

/** Writes a caller's address for the scripts of admission. Remembers the latest ones, because most callers come again. */
export function addressDigits(address: string): string {
  const known = recent.get(address);
  if (known !== undefined) return known;
  const digits = writeAddress(address);
  recent.set(address, digits);
  return digits;
}
