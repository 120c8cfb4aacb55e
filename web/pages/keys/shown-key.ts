import type { components } from '../../generated/api.d.ts';

/** A key that the page shows. It is in the memory of the page alone, and forgotten when the page is left. */
export interface ShownKey {
  readonly accountId: number;
  readonly apiKey: string;
  /** Whether it was made just now. */
  readonly isNew: boolean;
  /** Of an account that was created just now; null for others. */
  readonly grant: components['schemas']['SignupGrant'] | null;
}

export type ShowKey = (key: ShownKey | null) => void;
