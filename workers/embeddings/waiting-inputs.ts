import { FairQueue, type QueueEntry } from '../../shared/fairness/fair-queue.ts';

/** Null for the model's own. */
export type Dimensions = number | null;

export interface WaitingInput {
  readonly accountId: string;
  readonly dimensions: Dimensions;
  readonly tokens: number;
  /** Whether a call may hold it along with inputs of other accounts. */
  readonly sharesCalls: boolean;
  /**
   * The request that it came with, which gets its response when the last of its inputs is done. Its inputs are
   * added together.
   */
  readonly group: object;
}

export interface CallLimits {
  readonly maxInputs: number;
  readonly maxTokens: number;
}

export interface CallPlan extends CallLimits {
  /**
   * A call is full with this many inputs, unless the group of the last input fits completely into less than
   * twice as many.
   */
  readonly enough: number;
}

/** Inputs that an account adds to a call per turn, once each account has one in it. */
const turnInputs = 256;

/**
 * The inputs of a model that wait. Inputs that may share a call are in one queue: those with the same
 * dimensions, and of the same account if they share no calls. Accounts take turns in choosing the queue of the
 * next call, and the queues of each account take turns as well: an account has one turn among the accounts,
 * however many different dimensions it requests. Within a queue, accounts take turns in its calls.
 */
export class WaitingInputs<T extends WaitingInput> {
  readonly #queues = new Map<string, FairQueue<T>>();
  /** What each account waits for: one entry per queue. */
  readonly #turns = new FairQueue<string>();
  readonly #turnOf = new Map<string, QueueEntry<string>>();
  /** How many inputs of each group wait. */
  readonly #groups = new Map<object, number>();
  readonly #cohortOf: (accountId: string) => number | null;
  #size = 0;

  /** @param cohortOf the cohort of an account; accounts share calls only within one, and null is a cohort as well */
  constructor(cohortOf: (accountId: string) => number | null = () => null) {
    this.#cohortOf = cohortOf;
  }

  get size(): number {
    return this.#size;
  }

  /** Number of queues. At least as many calls are needed, because queues share no calls. */
  get queueCount(): number {
    return this.#queues.size;
  }

  /** The waiting accounts, in the order of their turns. */
  accountIds(): Iterable<string> {
    return this.#turns.holders();
  }

  add(input: T): QueueEntry<T> {
    const { accountId, group } = input;
    const name = nameQueue(input);
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new FairQueue();
      this.#queues.set(name, queue);
    }
    if (queue.countOf(accountId) === 0) {
      this.#turnOf.set(nameTurn(accountId, name), this.#turns.add(accountId, name));
    }
    this.#groups.set(group, (this.#groups.get(group) ?? 0) + 1);
    this.#size += 1;
    return queue.add(accountId, input);
  }

  /** Removes an input that nobody wants any more. */
  remove(entry: QueueEntry<T>): void {
    const queue = this.#queues.get(nameQueue(entry.item));
    if (queue?.remove(entry) === true) this.#noteLeft(queue, entry.item);
  }

  /**
   * Takes the inputs for one call: first one input of each account in turn, then many of one account in turn.
   * An input too large for any call goes alone.
   * @param servedId the account that the call is made for and begins with; if it no longer waits, the account
   * whose turn is next
   */
  take(servedId: string, plan: CallPlan): T[] {
    const turn = this.#turns.headOf(servedId) ?? this.#turns.peek();
    if (turn === undefined) return [];
    const { holder: accountId, item: name } = turn;
    const queue = this.#queues.get(name)!;
    const accounts = this.#findCompany(queue, accountId, plan.enough);
    this.#turns.serve(turn);
    this.#turnOf.set(nameTurn(accountId, name), this.#turns.add(accountId, name));
    const call = new Call(plan, queue, (entry) => {
      queue.serve(entry);
      this.#noteLeft(queue, entry.item);
    });
    if (accounts.length > 1) takeTurns(accounts, call, 1);
    while (!call.isFull && accounts.some((id) => queue.countOf(id) > 0)) {
      takeTurns(accounts, call, turnInputs, (group) => this.#groups.get(group) ?? 0);
    }
    return call.items;
  }

  /** Removes and returns all inputs, in no particular order. */
  drain(): T[] {
    const all = [...this.#queues.values()].flatMap((queue) => queue.drain());
    this.#queues.clear();
    this.#turns.drain();
    this.#turnOf.clear();
    this.#groups.clear();
    this.#size = 0;
    return all;
  }

  /**
   * The accounts that share a call with this one: the account itself first, then the others in the order of
   * their turns.
   */
  #findCompany(queue: FairQueue<T>, accountId: string, most: number): string[] {
    const cohort = this.#cohortOf(accountId);
    const accounts = [accountId];
    for (const id of queue.holders()) {
      if (accounts.length >= most) break;
      if (id !== accountId && this.#cohortOf(id) === cohort) accounts.push(id);
    }
    return accounts;
  }

  #noteLeft(queue: FairQueue<T>, input: T): void {
    const { accountId, group } = input;
    this.#size -= 1;
    const left = this.#groups.get(group)! - 1;
    if (left === 0) this.#groups.delete(group);
    else this.#groups.set(group, left);
    if (queue.countOf(accountId) > 0) return;
    const name = nameQueue(input);
    const turn = nameTurn(accountId, name);
    this.#turns.remove(this.#turnOf.get(turn)!);
    this.#turnOf.delete(turn);
    if (queue.size === 0) this.#queues.delete(name);
  }
}

const nameQueue = ({ accountId, dimensions, sharesCalls }: WaitingInput): string =>
  sharesCalls ? `${dimensions}` : nameTurn(accountId, `${dimensions}`);

const nameTurn = (accountId: string, queue: string): string => `${queue}\n${accountId}`;

function takeTurns<T extends WaitingInput>(
  accounts: readonly string[],
  call: Call<T>,
  mostOfEach: number,
  countGroup: ((group: object) => number) | null = null,
): void {
  for (const accountId of accounts) {
    // An account whose input did not fit keeps its turn and is first in the next call.
    if (call.isFull) return;
    call.take(accountId, mostOfEach);
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
  #hasNoRoom = false;

  constructor(plan: CallPlan, queue: FairQueue<T>, serve: (entry: QueueEntry<T>) => void) {
    this.#plan = plan;
    this.#queue = queue;
    this.#serve = serve;
  }

  get isFull(): boolean {
    return this.#hasNoRoom || this.items.length >= this.#plan.enough;
  }

  take(accountId: string, most: number): void {
    this.#takeUpTo(accountId, Math.min(this.#plan.enough, this.items.length + most));
  }

  /** Finishes the group of the last input with this call when only a few of its inputs are left. */
  finishGroup(accountId: string, countGroup: (group: object) => number): void {
    const { enough, maxInputs } = this.#plan;
    const rest = countGroup(this.items.at(-1)!.group);
    const room = Math.min(maxInputs, 2 * enough) - this.items.length;
    if (rest <= room) this.#takeUpTo(accountId, this.items.length + rest);
  }

  #takeUpTo(accountId: string, most: number): void {
    while (this.items.length < most && !this.#hasNoRoom) {
      const entry = this.#queue.headOf(accountId);
      if (entry === undefined) return;
      const { tokens } = entry.item;
      if (this.items.length > 0 && this.#tokens + tokens > this.#plan.maxTokens) {
        this.#hasNoRoom = true;
        return;
      }
      this.#serve(entry);
      this.items.push(entry.item);
      this.#tokens += tokens;
    }
  }
}
