import { accessMessage } from '../../shared/platform/runtime/format-log-line.ts';
import { toPrintable } from '../../shared/platform/runtime/to-printable.ts';
import { shorten } from '../../shared/platform/runtime/shorten.ts';

/** Warnings that are parsed for the summary of a second. Further ones are only counted. */
const maxParsed = 1_000;
const maxShownKinds = 3;
const maxShownNames = 8;
const maxKindLength = 80;
const maxWords = 20;

/** Lines that the console did not show: how many, and what the warnings among them are about. */
export class SkippedLines {
  #lines = 0;
  #warnings = 0;
  #parsed = 0;
  /** Kind of a warning → how many, and the upstreams, models or positions that they are about. */
  readonly #kinds = new Map<string, { count: number; readonly names: Set<string> }>();

  addLine(): void {
    this.#lines += 1;
  }

  /** @param line as it was logged */
  addWarning(line: string): void {
    this.#lines += 1;
    this.#warnings += 1;
    if (this.#parsed >= maxParsed) return;
    this.#parsed += 1;
    const { kind, name } = classify(line);
    const entry = this.#kinds.get(kind) ?? { count: 0, names: new Set() };
    this.#kinds.set(kind, entry);
    entry.count += 1;
    if (name !== null) entry.names.add(name);
  }

  clear(): void {
    this.#lines = 0;
    this.#warnings = 0;
    this.#parsed = 0;
    this.#kinds.clear();
  }

  /** Returns one line, or null if nothing was skipped. */
  describe(): string | null {
    if (this.#lines === 0) return null;
    const kinds = this.#describeKinds();
    return `… and ${this.#count()}, which are in the logs${kinds === '' ? '' : `: ${kinds}`}`;
  }

  #count(): string {
    const [lines, warnings] = [this.#lines, this.#warnings];
    if (lines === warnings) return `${lines} more ${lines === 1 ? 'warning' : 'warnings'}`;
    const warningsPart =
      warnings === 0 ? '' : `, ${warnings} of them ${warnings === 1 ? 'a warning' : 'warnings'}`;
    return `${lines} more ${lines === 1 ? 'line' : 'lines'}${warningsPart}`;
  }

  #describeKinds(): string {
    const kinds = [...this.#kinds].toSorted(([, a], [, b]) => b.count - a.count);
    const shown = kinds.slice(0, maxShownKinds).map(([kind, { count, names }]) => {
      const prefix = kinds.length === 1 ? '' : `${count} × `;
      return `${prefix}${kind}${names.size === 0 ? '' : ` (${listNames([...names])})`}`;
    });
    const others = kinds.length - shown.length;
    return [...shown, ...(others === 0 ? [] : [`${others} other kinds`])].join('; ');
  }
}

function listNames(names: readonly string[]): string {
  const shown = names.slice(0, maxShownNames).join(', ');
  return names.length > maxShownNames ? `${shown} and ${names.length - maxShownNames} more` : shown;
}

/** Returns what a warning says, without what it is about, and what it is about. */
function classify(line: string): { readonly kind: string; readonly name: string | null } {
  const { msg, code, upstream, model } = readFields(line);
  const message = typeof msg === 'string' ? msg : '';
  const [first, second, third, ...others] = message.split(' ', maxWords);
  // Warnings of the catalog are `catalog: upstream lab is skipped: reason`, or `catalog: file:4:5 models[0] lacks this`.
  if (first === 'catalog:' && third !== undefined) {
    const problem = others.join(' ').split(/[:;]/, 1)[0]!;
    const kind = second === 'upstream' ? `catalog: upstream ${problem}` : `catalog: ${problem}`;
    return { kind: toKind(kind), name: toName(third) };
  }
  const kind = message === accessMessage && typeof code === 'string' ? `${message}: ${code}` : message;
  const name = [upstream, model].find((value) => typeof value === 'string');
  return { kind: toKind(kind), name: typeof name === 'string' ? toName(name) : null };
}

const toKind = (text: string): string => toPrintable(shorten(text.trim(), maxKindLength));
const toName = (text: string): string => toPrintable(shorten(text, 40));

function readFields(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    // Only looks like one of our lines.
    return {};
  }
}
