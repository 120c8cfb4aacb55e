import type { HotBalance } from './billing.ts';

/** A ledger entry that a step of the model adds. */
export interface ModelEntry {
  readonly kind: 'charge' | 'refill';
  readonly amount: bigint;
  readonly shortfall: bigint;
  readonly free: number;
  readonly ordinal: number | null;
}

interface ModelRequest {
  /** `orphaned`: the reservation was released, but the request may still be settled. */
  state: 'open' | 'orphaned' | 'ended';
  readonly reserved: bigint;
  readonly free: boolean;
  readonly claim: string | null;
}

/** A reference model of one account's money. The billing scripts must match it to the nano-rouble. */
export class AccountModel {
  #balance = 0n;
  #free: number;
  #charges = 0;
  #codes = 0;
  readonly #requests = new Map<string, ModelRequest>();
  readonly #claims = new Map<string, string>();
  readonly #refills = new Set<string>();
  readonly entries: ModelEntry[] = [];

  constructor(free: number) {
    this.#free = free;
  }

  get balance(): HotBalance {
    const open = this.#open();
    return {
      balance: this.#balance,
      reserved: open.reduce((sum, request) => sum + request.reserved, 0n),
      free: this.#free,
      freeHeld: open.filter((request) => request.free).length,
    };
  }

  /** The request that each claim belongs to. */
  get claims(): ReadonlyMap<string, string> {
    return this.#claims;
  }

  admit(
    id: string,
    cost: bigint,
    freeAllowed: boolean,
    claim: string | null,
  ): 'ok' | 'attached' | 'insufficient' {
    const { balance, reserved, free, freeHeld } = this.balance;
    if (claim !== null && this.#claims.has(claim)) return 'attached';
    const isFree = freeAllowed && free > freeHeld;
    if (!isFree && cost > balance - reserved) return 'insufficient';
    this.#requests.set(id, { state: 'open', reserved: isFree ? 0n : cost, free: isFree, claim });
    if (claim !== null) this.#claims.set(claim, id);
    return 'ok';
  }

  settle(id: string, requested: bigint, fails: boolean): void {
    const request = this.#requests.get(id);
    if (request === undefined || request.state === 'ended') return;
    const isLate = request.state === 'orphaned';
    // The request was retried with the same claim, and the retry is charged instead.
    if (isLate && request.claim !== null && this.#claims.has(request.claim)) return;
    request.state = 'ended';
    if (isLate && request.claim !== null) this.#claims.set(request.claim, id);
    if (fails) this.#dropClaim(id, request.claim);
    const { balance, reserved, free, freeHeld } = this.balance;
    const isFree = request.free && (!isLate || free > freeHeld);
    let cost = 0n;
    let usesFreeRequest = false;
    if (isFree) usesFreeRequest = !fails;
    else {
      const reservedNow = isLate ? 0n : request.reserved;
      const spendable = balance - reserved;
      // At most twice the reserved amount, even if that was already released. A free request reserves nothing.
      const capped = request.free || requested <= 2n * request.reserved ? requested : 2n * request.reserved;
      cost =
        capped <= reservedNow
          ? capped
          : capped < spendable
            ? capped
            : spendable > reservedNow
              ? spendable
              : reservedNow;
    }
    this.#balance -= cost;
    if (usesFreeRequest) this.#free -= 1;
    this.#charges += 1;
    const shortfall = isFree ? 0n : requested - cost;
    const freeChange = usesFreeRequest ? -1 : 0;
    this.entries.push({ kind: 'charge', amount: -cost, shortfall, free: freeChange, ordinal: this.#charges });
  }

  release(id: string): void {
    const request = this.#requests.get(id);
    if (request?.state !== 'open') return;
    request.state = 'ended';
    this.#dropClaim(id, request.claim);
  }

  orphan(id: string): void {
    const request = this.#requests.get(id);
    if (request?.state !== 'open') return;
    request.state = 'orphaned';
    this.#dropClaim(id, request.claim);
  }

  refill(id: string, amount: bigint, free: number, isCode: boolean): void {
    if (this.#refills.has(id)) return;
    this.#refills.add(id);
    const { balance, reserved, freeHeld } = this.balance;
    const balanceChange = amount < reserved - balance ? reserved - balance : amount;
    const freeChange = Math.max(free, Math.min(0, freeHeld - this.#free));
    this.#balance += balanceChange;
    this.#free += freeChange;
    if (isCode) this.#codes += 1;
    const ordinal = isCode ? this.#codes : null;
    this.entries.push({ kind: 'refill', amount: balanceChange, shortfall: 0n, free: freeChange, ordinal });
  }

  #open(): ModelRequest[] {
    return [...this.#requests.values()].filter((request) => request.state === 'open');
  }

  #dropClaim(id: string, claim: string | null): void {
    if (claim !== null && this.#claims.get(claim) === id) this.#claims.delete(claim);
  }
}
