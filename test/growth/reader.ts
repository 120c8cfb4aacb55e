import { findFastGrowth } from './measure-growth.ts';
import { listHostileTexts } from './hostile-texts.ts';

/** An input of a reader. `size` is its length, or the number of its items. */
export interface Hostile {
  readonly name: string;
  readonly maxSize: number;
  readonly prepare: (size: number) => () => unknown;
}

/** A part of the product that reads what someone outside sends. */
export interface Reader {
  readonly name: string;
  readonly inputs: () => Iterable<Hostile>;
}

export interface TextOptions {
  /** The longest text that reaches the reader, or long enough to see how its time grows. */
  readonly maxSize?: number;
  readonly tokens?: readonly string[];
  readonly frames?: readonly { readonly head?: string; readonly tail?: string }[];
}

/** As long as all headers of a request together may be. */
const headerBytes = 16 * 1024;

export const readsText = (
  name: string,
  read: (text: string) => unknown,
  { maxSize = headerBytes, tokens, frames }: TextOptions = {},
): Reader => ({
  name,
  *inputs() {
    for (const { name: textName, make } of listHostileTexts(tokens, frames)) {
      const prepare = (size: number): (() => unknown) => {
        const text = make(size);
        return () => read(text);
      };
      yield { name: textName, maxSize, prepare };
    }
  },
});

/** @param shapes functions that make an input with this many items */
export const readsItems = <T>(
  name: string,
  read: (input: T) => unknown,
  shapes: Readonly<Record<string, (count: number) => T>>,
  maxSize = 16_000,
): Reader => ({
  name,
  *inputs() {
    for (const [shapeName, make] of Object.entries(shapes)) {
      const prepare = (size: number): (() => unknown) => {
        const input = make(size);
        return () => read(input);
      };
      yield { name: shapeName, maxSize, prepare };
    }
  },
});

/**
 * Returns a line for each input for which the reader's time grows faster than the input.
 * @param attempts see `findFastGrowth`
 */
export async function findSlowInputs(reader: Reader, attempts = 1): Promise<string[]> {
  const found: string[] = [];
  for (const { name, maxSize, prepare } of reader.inputs()) {
    const growth = await findFastGrowth({ make: prepare, run: (start) => start(), maxSize }, attempts);
    if (growth !== null) found.push(`${reader.name}, ${name}: ${growth}`);
  }
  return found;
}
