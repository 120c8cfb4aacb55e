// decision 0074
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ChainableCommander } from 'ioredis';
import type { RedisClient } from './redis-client.ts';
import { replyCode } from './reply-code.ts';

export type ScriptValue = string | number | Buffer;

/** Where a value of a script goes: into its keys or its arguments, and at which position, from 0. */
interface Position {
  readonly list: 'KEYS' | 'ARGV';
  readonly index: number;
}

type Values<Name extends string> = Readonly<Record<Name, ScriptValue>>;

/** `local window = KEYS[2]` at the top of a file, or `local slots = tonumber(ARGV[3])`. */
const fixedPattern = /^local (\w+) = (?:tonumber\()?(KEYS|ARGV)\[(\d+)\]/gm;
/** `local claim = KEYS[eachKey + 3]` in the loop over a script's items. */
const itemPattern = /^ +local (\w+) = (?:tonumber\()?(KEYS|ARGV)\[each(?:Key|Arg) \+ (\d+)\]/gm;
/** What the file expects from the program: `-- luacheck: read globals maxEntries`. */
const constantsPattern = /^-- luacheck: read globals (.+)$/gm;
const commentPattern = /^[ \t]*--.*$/gm;
/** The description of a key or an argument, after its assignment. */
const descriptionPattern = /^( *local \w+ = (?:tonumber\()?(?:KEYS|ARGV)\[[^\]]+\]\)?) -- .*$/gm;

/**
 * A Lua script, stored in its own file. At its top, the file names each of its keys and arguments. Callers pass values by
 * name, so only the file knows their positions. The build has already inlined the files that it includes (see
 * `scripts/bootstrap/lua.mjs`).
 *
 * A script may work on a list of items, each with the same keys and arguments. They follow the fixed ones, and the file
 * assigns them to names in a loop, relative to `eachKey` and `eachArg`.
 *
 * A script is run by its hash. Its text is sent only if Redis does not know it yet.
 */
export class LuaScript<Name extends string, ItemName extends string = never> {
  readonly #text: string;
  readonly #sha: string;
  readonly #fixed: Layout;
  readonly #item: Layout;

  /**
   * @param file `new URL('./name.lua', import.meta.url)`
   * @param names of the fixed keys and arguments, in any order
   * @param options.itemNames the keys and arguments of each item
   * @param options.constants values for the names that the file declares as `read globals`
   * @throws TypeError if the names are not exactly those that the file assigns or declares
   */
  constructor(
    file: URL,
    names: readonly Name[],
    {
      itemNames = [],
      constants = {},
    }: {
      readonly itemNames?: readonly ItemName[];
      readonly constants?: Readonly<Record<string, string | number>>;
    } = {},
  ) {
    const source = readFileSync(file, 'utf8');
    this.#fixed = new Layout(source, fixedPattern);
    this.#item = new Layout(source, itemPattern);
    const declared = [...source.matchAll(constantsPattern)].flatMap(([, list]) => list!.split(' '));
    checkNames(file, 'keys and arguments', names, this.#fixed.names);
    checkNames(file, 'keys and arguments of items', itemNames, this.#item.names);
    checkNames(file, 'constants', Object.keys(constants), [...new Set(declared)]);
    const code = source.replaceAll(commentPattern, '').replaceAll(descriptionPattern, '$1');
    this.#text = `${toLua(constants)}${code}`;
    this.#sha = createHash('sha1').update(this.#text).digest('hex');
  }

  async run(
    redis: RedisClient,
    values: Values<Name>,
    items: readonly Values<ItemName>[] = [],
  ): Promise<unknown> {
    const args = this.#lay(values, items);
    try {
      return await redis.evalsha(this.#sha, ...args);
    } catch (error) {
      if (replyCode(error) !== 'NOSCRIPT') throw error;
      return await redis.eval(this.#text, ...args);
    }
  }

  /**
   * Like `run`, but always sends the text, so that scripts on one connection run in the order in which they were
   * called.
   */
  async runInOrder(
    redis: RedisClient,
    values: Values<Name>,
    items: readonly Values<ItemName>[] = [],
  ): Promise<unknown> {
    return await redis.eval(this.#text, ...this.#lay(values, items));
  }

  /** Adds the script to a transaction, which always sends the text. */
  addTo(
    transaction: ChainableCommander,
    values: Values<Name>,
    items: readonly Values<ItemName>[] = [],
  ): void {
    transaction.eval(this.#text, ...this.#lay(values, items));
  }

  /**
   * Returns the number of keys, and a list of the keys and arguments. `EVAL` takes the list in place of its elements: as
   * arguments of a call, a hundred thousand of them would not fit on the stack.
   */
  #lay(values: Values<Name>, items: readonly Values<ItemName>[]): [keyCount: number, values: ScriptValue] {
    const keyCount = this.#fixed.keyCount + items.length * this.#item.keyCount;
    const laid: ScriptValue[] = [];
    this.#fixed.place(values, laid, 0, keyCount);
    for (const [i, item] of items.entries()) {
      const firstKey = this.#fixed.keyCount + i * this.#item.keyCount;
      const firstArg = keyCount + this.#fixed.argCount + i * this.#item.argCount;
      this.#item.place(item, laid, firstKey, firstArg);
    }
    // The client flattens its arguments, which its types do not say.
    return [keyCount, laid as unknown as ScriptValue];
  }
}

/** The keys and arguments that a file assigns to names. */
class Layout {
  readonly #positions: readonly (readonly [name: string, position: Position])[];
  readonly keyCount: number;
  readonly argCount: number;

  constructor(source: string, pattern: RegExp) {
    this.#positions = [...source.matchAll(pattern)].map(([, name, list, number]) => [
      name!,
      { list: list as Position['list'], index: Number(number) - 1 },
    ]);
    this.keyCount = this.#count('KEYS');
    this.argCount = this.#count('ARGV');
  }

  get names(): string[] {
    return this.#positions.map(([name]) => name);
  }

  place(
    values: Readonly<Record<string, ScriptValue>>,
    target: unknown[],
    firstKey: number,
    firstArg: number,
  ): void {
    for (const [name, { list, index }] of this.#positions)
      target[(list === 'KEYS' ? firstKey : firstArg) + index] = values[name];
  }

  #count(list: Position['list']): number {
    const indexes = this.#positions.flatMap(([, position]) =>
      position.list === list ? [position.index] : [],
    );
    if (indexes.some((index) => index >= indexes.length) || new Set(indexes).size !== indexes.length)
      throw new TypeError(`${list} are not numbered from 1 without gaps: ${this.names.join(', ')}`);
    return indexes.length;
  }
}

function checkNames(file: URL, what: string, given: readonly string[], expected: readonly string[]): void {
  const [a, b] = [given, expected].map((names) => names.toSorted().join(', '));
  if (a !== b) throw new TypeError(`The ${what} of ${file.pathname} are ${b}, not ${a}.`);
}

function toLua(constants: Readonly<Record<string, string | number>>): string {
  return Object.entries(constants)
    .map(([name, value]) => `local ${name} = ${typeof value === 'number' ? value : `'${value}'`} `)
    .join('');
}
