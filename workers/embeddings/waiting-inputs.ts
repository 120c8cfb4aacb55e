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

/** A call that is being filled. All of its inputs are in the queue of this name, and of accounts of this cohort. */
export interface StartedCall<T> {
  /** The account that it is made for. */
  readonly accountId: string;
  readonly queue: string;
  readonly cohort: number | null;
  readonly items: T[];
  /** Of the items. */
  tokens: number;
}

/** Maximum number of inputs that an account adds to a call per fair-queue turn, after every account has added one. */
const maxInputsPerTurn = 256;

/**
 * The waiting inputs of a model and a class of calls. Inputs that may share a call are in the same queue: there is one queue for each number
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
   * Starts a call for the account whose turn it is. It is empty until `fill` is called.
   * @param accountToServe the account that the call is made for; if it no longer waits, the account whose turn is next is
   * used
   * @returns null if nothing waits
   */
  start(accountToServe: string): StartedCall<T> | null {
    const turn = this.#turns.headOf(accountToServe) ?? this.#turns.peek();
    if (turn === undefined) return null;
    const { holder: accountId, item: queue } = turn;
    this.#turns.serve(turn);
    this.#turnEntries.set(turnKeyOf(accountId, queue), this.#turns.add(accountId, queue));
    return { accountId, queue, cohort: this.#cohortOf(accountId), items: [], tokens: 0 };
  }

  /**
   * Adds inputs to a call: first one per account, then up to 256 per account in turn, beginning with the account that the
   * call is made for. An input that is too large for any call goes alone.
   * @param call started here, or by inputs of the same model that wait elsewhere
   */
  fill(call: StartedCall<T>, plan: CallPlan): void {
    const queue = this.#queues.get(call.queue);
    if (queue === undefined) return;
    const filling = new Filling(call, plan, queue, (entry) => {
      queue.serve(entry);
      this.#updateCounts(queue, entry.item);
    });
    if (filling.isFull) return;
    const accounts = this.#findCallAccounts(queue, call, plan.enough - call.items.length);
    if (accounts.length > 1) takeTurns(accounts, filling, 1);
    while (!filling.isFull && accounts.some((id) => queue.countOf(id) > 0)) {
      takeTurns(accounts, filling, maxInputsPerTurn, (group) => this.#groups.get(group) ?? 0);
    }
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
   * Returns the accounts whose inputs may be added to the call: the one that it is made for first, then the others in the
   * order of their turns.
   */
  #findCallAccounts(
    queue: FairQueue<T>,
    { accountId, cohort }: StartedCall<T>,
    maxAccounts: number,
  ): string[] {
    const accounts = queue.countOf(accountId) > 0 ? [accountId] : [];
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
  filling: Filling<T>,
  maxPerAccount: number,
  countGroup: ((group: object) => number) | null = null,
): void {
  for (const accountId of accounts) {
    // An account whose input did not fit keeps its turn and is first in the next call.
    if (filling.isFull) return;
    filling.take(accountId, maxPerAccount);
    if (filling.isFull && countGroup !== null) filling.finishGroup(accountId, countGroup);
  }
}

/** Adds inputs of one queue to a call. */
class Filling<T extends WaitingInput> {
  readonly #call: StartedCall<T>;
  readonly #plan: CallPlan;
  readonly #queue: FairQueue<T>;
  readonly #serve: (entry: QueueEntry<T>) => void;
  #isAtTokenLimit = false;

  constructor(
    call: StartedCall<T>,
    plan: CallPlan,
    queue: FairQueue<T>,
    serve: (entry: QueueEntry<T>) => void,
  ) {
    this.#call = call;
    this.#plan = plan;
    this.#queue = queue;
    this.#serve = serve;
  }

  get isFull(): boolean {
    return this.#isAtTokenLimit || this.#call.items.length >= this.#plan.enough;
  }

  take(accountId: string, maxItems: number): void {
    this.#takeUpTo(accountId, Math.min(this.#plan.enough, this.#call.items.length + maxItems));
  }

  /** Adds the remaining inputs of the last input's group if they fit. */
  finishGroup(accountId: string, countGroup: (group: object) => number): void {
    const { enough, maxInputs } = this.#plan;
    const { items } = this.#call;
    const remaining = countGroup(items.at(-1)!.group);
    const capacity = Math.min(maxInputs, 2 * enough) - items.length;
    if (remaining <= capacity) this.#takeUpTo(accountId, items.length + remaining);
  }

  #takeUpTo(accountId: string, maxItems: number): void {
    const { items } = this.#call;
    while (items.length < maxItems && !this.#isAtTokenLimit) {
      const entry = this.#queue.headOf(accountId);
      if (entry === undefined) return;
      const { tokens } = entry.item;
      if (items.length > 0 && this.#call.tokens + tokens > this.#plan.maxTokens) {
        this.#isAtTokenLimit = true;
        return;
      }
      this.#serve(entry);
      items.push(entry.item);
      this.#call.tokens += tokens;
    }
  }
}
