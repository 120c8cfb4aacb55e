import { FairQueue, type QueueEntry } from '../../shared/fairness/fair-queue.ts';

/** Null for the model's default. */
export type Dimensions = number | null;

export interface WaitingInput {
  readonly accountId: string;
  readonly dimensions: Dimensions;
  readonly tokens: number;
  /** Whether a call may combine it with inputs of other accounts. */
  readonly sharesCalls: boolean;
  /**
   * The request that it belongs to, whose response is sent when the last of its inputs is done. The inputs of a
   * request are added together.
   */
  readonly group: object;
}

export interface SharedCallLimits {
  readonly maxInputs: number;
  readonly maxTokens: number;
}

export interface CallPlan extends SharedCallLimits {
  /**
   * A call is full at this many inputs. Up to twice as many are taken if that completes the group of the last
   * input.
   */
  readonly enough: number;
}

/** Maximum number of inputs that an account adds to a call per fair-queue turn, after every account has added one. */
const maxInputsPerTurn = 256;

/**
 * The waiting inputs of a model. Inputs that may share a call are in the same queue: there is one queue for each number
 * of dimensions, and a separate one per account for inputs that must not share calls with other accounts. Accounts take
 * turns at choosing the queue of the next call, and an account with inputs in several queues alternates between them. So
 * an account that requests many different dimensions gets no more turns than others. Within a queue, accounts take turns
 * in its calls.
 */
export class WaitingInputs<T extends WaitingInput> {
  readonly #queues = new Map<string, FairQueue<T>>();
  /** Per account, one entry for each queue in which it has inputs. */
  readonly #turns = new FairQueue<string>();
  readonly #turnEntries = new Map<string, QueueEntry<string>>();
  /** The number of waiting inputs per group. */
  readonly #groups = new Map<object, number>();
  readonly #cohortOf: (accountId: string) => number | null;
  #size = 0;

  /**
   * @param cohortOf returns an account's cohort, or null; accounts share calls only within their cohort, and accounts
   * without a cohort share calls with one another
   */
  constructor(cohortOf: (accountId: string) => number | null = () => null) {
    this.#cohortOf = cohortOf;
  }

  get size(): number {
    return this.#size;
  }

  /** Number of queues. At least as many calls are needed, because queues do not share calls. */
  get queueCount(): number {
    return this.#queues.size;
  }

  /** The waiting accounts, in the order of their turns. */
  accountIds(): Iterable<string> {
    return this.#turns.holders();
  }

  add(input: T): QueueEntry<T> {
    const { accountId, group } = input;
    const name = queueNameOf(input);
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new FairQueue();
      this.#queues.set(name, queue);
    }
    if (queue.countOf(accountId) === 0) {
      this.#turnEntries.set(turnKeyOf(accountId, name), this.#turns.add(accountId, name));
    }
    this.#groups.set(group, (this.#groups.get(group) ?? 0) + 1);
    this.#size += 1;
    return queue.add(accountId, input);
  }

  /** Removes an input that nobody waits for any more. */
  remove(entry: QueueEntry<T>): void {
    const queue = this.#queues.get(queueNameOf(entry.item));
    if (queue?.remove(entry) === true) this.#updateCounts(queue, entry.item);
  }

  /**
   * Takes the inputs for one call: first one input per account, then up to 256 per account in turn. An input that
   * is too large for any call goes alone.
   * @param accountToServe the account that the call is made for and begins with; if it no longer waits, the account
   * whose turn is next is used
   */
  take(accountToServe: string, plan: CallPlan): T[] {
    const turn = this.#turns.headOf(accountToServe) ?? this.#turns.peek();
    if (turn === undefined) return [];
    const { holder: accountId, item: name } = turn;
    const queue = this.#queues.get(name)!;
    const accounts = this.#findCallAccounts(queue, accountId, plan.enough);
    this.#turns.serve(turn);
    this.#turnEntries.set(turnKeyOf(accountId, name), this.#turns.add(accountId, name));
    const call = new Call(plan, queue, (entry) => {
      queue.serve(entry);
      this.#updateCounts(queue, entry.item);
    });
    if (accounts.length > 1) takeTurns(accounts, call, 1);
    while (!call.isFull && accounts.some((id) => queue.countOf(id) > 0)) {
      takeTurns(accounts, call, maxInputsPerTurn, (group) => this.#groups.get(group) ?? 0);
    }
    return call.items;
  }

  /** Removes and returns all inputs, in no particular order. */
  drain(): T[] {
    const all = [...this.#queues.values()].flatMap((queue) => queue.drain());
    this.#queues.clear();
    this.#turns.drain();
    this.#turnEntries.clear();
    this.#groups.clear();
    this.#size = 0;
    return all;
  }

  /**
   * Returns the accounts that share a call with this one: the account itself first, then the others in the order of
   * their turns.
   */
  #findCallAccounts(queue: FairQueue<T>, accountId: string, maxAccounts: number): string[] {
    const cohort = this.#cohortOf(accountId);
    const accounts = [accountId];
    for (const id of queue.holders()) {
      if (accounts.length >= maxAccounts) break;
      if (id !== accountId && this.#cohortOf(id) === cohort) accounts.push(id);
    }
    return accounts;
  }

  #updateCounts(queue: FairQueue<T>, input: T): void {
    const { accountId, group } = input;
    this.#size -= 1;
    const remaining = this.#groups.get(group)! - 1;
    if (remaining === 0) this.#groups.delete(group);
    else this.#groups.set(group, remaining);
    if (queue.countOf(accountId) > 0) return;
    const name = queueNameOf(input);
    const turn = turnKeyOf(accountId, name);
    this.#turns.remove(this.#turnEntries.get(turn)!);
    this.#turnEntries.delete(turn);
    if (queue.size === 0) this.#queues.delete(name);
  }
}

const queueNameOf = ({ accountId, dimensions, sharesCalls }: WaitingInput): string =>
  sharesCalls ? `${dimensions}` : turnKeyOf(accountId, `${dimensions}`);

const turnKeyOf = (accountId: string, queue: string): string => `${queue}\n${accountId}`;

function takeTurns<T extends WaitingInput>(
  accounts: readonly string[],
  call: Call<T>,
  maxPerAccount: number,
  countGroup: ((group: object) => number) | null = null,
): void {
  for (const accountId of accounts) {
    // An account whose input did not fit keeps its turn and is first in the next call.
    if (call.isFull) return;
    call.take(accountId, maxPerAccount);
    if (call.isFull && countGroup !== null) call.finishGroup(accountId, countGroup);
  }
}

/** A call that is being filled. */
class Call<T extends WaitingInput> {
  readonly items: T[] = [];
  readonly #plan: CallPlan;
  readonly #queue: FairQueue<T>;
  readonly #serve: (entry: QueueEntry<T>) => void;
  #tokens = 0;
  #isAtTokenLimit = false;

  constructor(plan: CallPlan, queue: FairQueue<T>, serve: (entry: QueueEntry<T>) => void) {
    this.#plan = plan;
    this.#queue = queue;
    this.#serve = serve;
  }

  get isFull(): boolean {
    return this.#isAtTokenLimit || this.items.length >= this.#plan.enough;
  }

  take(accountId: string, maxItems: number): void {
    this.#takeUpTo(accountId, Math.min(this.#plan.enough, this.items.length + maxItems));
  }

  /** Adds the remaining inputs of the last input's group if they fit. */
  finishGroup(accountId: string, countGroup: (group: object) => number): void {
    const { enough, maxInputs } = this.#plan;
    const remaining = countGroup(this.items.at(-1)!.group);
    const capacity = Math.min(maxInputs, 2 * enough) - this.items.length;
    if (remaining <= capacity) this.#takeUpTo(accountId, this.items.length + remaining);
  }

  #takeUpTo(accountId: string, maxItems: number): void {
    while (this.items.length < maxItems && !this.#isAtTokenLimit) {
      const entry = this.#queue.headOf(accountId);
      if (entry === undefined) return;
      const { tokens } = entry.item;
      if (this.items.length > 0 && this.#tokens + tokens > this.#plan.maxTokens) {
        this.#isAtTokenLimit = true;
        return;
      }
      this.#serve(entry);
      this.items.push(entry.item);
      this.#tokens += tokens;
    }
  }
}
