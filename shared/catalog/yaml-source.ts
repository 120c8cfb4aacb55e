import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Node,
} from 'yaml';

/** A path into a document: `['models', 0, 'pricing']`. */
export type Location = readonly (string | number)[];

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface YamlProblem extends Position {
  readonly message: string;
}

export interface YamlSource {
  /** Plain data. Undefined if the text is not YAML; `problems` then has the reasons. */
  readonly value: unknown;
  readonly problems: readonly YamlProblem[];
  /**
   * Locates a value, or its name if `part` is `key`. A missing value is reported where it was expected: at the name,
   * or the first line, of its parent.
   */
  locate(location: Location, part?: 'value' | 'key'): Position;
}

/**
 * For these errors, the parser's message quotes parts of the file, which may be secrets. Its other messages only state
 * what was expected.
 */
const safeMessages: Record<string, string> = {
  BAD_ALIAS: 'invalid alias or anchor: quote the text if it is meant to begin with "*" or "&"',
  BAD_DIRECTIVE: 'invalid directive: a line that begins with "%" is a directive',
  BAD_DQ_ESCAPE: 'invalid escape sequence in a double-quoted text',
  RESOURCE_EXHAUSTION: 'the nesting is too deep',
  TAG_RESOLVE_FAILED: 'unknown tag: quote the text if it is meant to begin with "!"',
};

function describe(code: string, message: string): string {
  const replacement = safeMessages[code];
  if (replacement !== undefined) return replacement;
  // If other messages quote the file, they do so after a colon.
  const unquoted = code === 'UNEXPECTED_TOKEN' ? message.split(': ', 1)[0]! : message;
  return unquoted.charAt(0).toLowerCase() + unquoted.slice(1);
}

/** Reads one YAML 1.2 document, with anchors and merge keys. Never throws, and never quotes a value from the file. */
export function readYaml(text: string): YamlSource {
  const counter = new LineCounter();
  // The pretty form of an error quotes the line it is on.
  const document = parseDocument(text, {
    lineCounter: counter,
    prettyErrors: false,
    stringKeys: true,
    merge: true,
  });
  const toPosition = (offset: number): Position => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const toProblem = (offset: number, message: string): YamlProblem => ({ ...toPosition(offset), message });

  const problems = [...document.errors, ...document.warnings].map((error) =>
    toProblem(error.pos[0], describe(error.code, error.message)),
  );
  visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) === undefined) {
        problems.push(toProblem(alias.range?.[0] ?? 0, safeMessages['BAD_ALIAS']!));
      }
    },
  });
  let value: unknown;
  if (problems.length === 0) {
    try {
      value = document.toJS();
    } catch {
      // The only other failure is the parser's guard against excessive alias expansion.
      problems.push(toProblem(0, 'aliases expand to too much data'));
    }
  }
  return {
    value,
    problems,
    locate: (location, part = 'value') => toPosition(findOffset(document, location, part)),
  };
}

function findOffset(document: Document.Parsed, location: Location, part: 'value' | 'key'): number {
  let node: Node | null = document.contents;
  let known = offsetOf(node) ?? 0;
  for (const [depth, name] of location.entries()) {
    if (isAlias(node)) node = node.resolve(document) ?? null;
    let next: Node | null | undefined;
    if (isMap<Node, Node | null>(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(name));
      if (pair === undefined) return known;
      const isLast = depth === location.length - 1;
      next = pair.value;
      const keyOffset = offsetOf(pair.key) ?? known;
      // For a map or list that starts on its own line, point at its name in the line above.
      const showsKey = (isLast && part === 'key') || !isScalar(next);
      known = showsKey ? keyOffset : (offsetOf(next) ?? keyOffset);
    } else if (isSeq<Node>(node)) {
      next = node.items[Number(name)];
      known = offsetOf(next) ?? known;
    }
    if (next === undefined || next === null) return known;
    node = next;
  }
  return known;
}

const offsetOf = (node: Node | null | undefined): number | undefined => node?.range?.[0];
