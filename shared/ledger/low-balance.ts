// decision 0096

/** A balance that is below the threshold of its account. */
export interface LowBalance {
  /** The ledger entry with which it fell; one mail is sent for each. */
  readonly id: string;
  readonly at: Date;
  /** Whether the owner was told. */
  readonly isMailed: boolean;
}

/** An account's balance in MongoDB, which changes only with the position of its last ledger entry. */
export interface ThresholdState {
  readonly balanceNano: bigint;
  /** Null if the account has none. */
  readonly lowBalanceNano: bigint | null;
  readonly isLow: boolean;
}

/**
 * Returns the new state of an account whose balance changes by this amount: null if it is not below its threshold,
 * undefined if the state stays.
 * @param id of the last entry
 */
export function findLowState(
  { balanceNano, lowBalanceNano, isLow }: ThresholdState,
  changeNano: bigint,
  id: string,
): LowBalance | null | undefined {
  const willBeLow = lowBalanceNano !== null && balanceNano + changeNano < lowBalanceNano;
  if (willBeLow === isLow) return undefined;
  return willBeLow ? { id, at: new Date(), isMailed: false } : null;
}
