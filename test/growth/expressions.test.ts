import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, type Node } from 'acorn';
import test from 'ava';
import { findSlowInputs, readsText } from './reader.ts';

/** Files whose expressions match no text from outside, and why. */
const ownTexts: Readonly<Record<string, string>> = {
  'api/pages/docs/highlight-code': 'the examples of our own description',
};

/** Files that build expressions from parts, and the readers in `readers/` that test them. */
const builtExpressions: Readonly<Record<string, string>> = {
  'api/http/connections/unacknowledged-bytes': 'the table of sockets comes from the kernel',
  'shared/accounts/credentials': 'reader "refill code"; the other splits a code that was created here',
  'shared/contract/mask-secrets': 'reader "text with parts of secrets"',
  'workers/upstreams/builtin/edit/parse-edits': 'reader "edits of an image"',
  'workers/upstreams/http-failure': 'reader "message of a vendor"',
};

interface Found {
  readonly file: string;
  /** Null for an expression that is built from parts. */
  readonly pattern: RegExp | null;
}

const compiled = 'dist';

function listFiles(folder: string): string[] {
  return readdirSync(join(compiled, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return listFiles(path);
    return path.endsWith('.js') ? [path.slice(0, -'.js'.length)] : [];
  });
}

/** All expressions of the product's compiled code. */
function findExpressions(): Found[] {
  return ['api', 'shared', 'workers'].flatMap(listFiles).flatMap((file) => {
    const found: Found[] = [];
    const text = readFileSync(join(compiled, `${file}.js`), 'utf8');
    visit(parse(text, { ecmaVersion: 'latest', sourceType: 'module' }), (node) => {
      const { type, regex, callee } = node as Node & {
        readonly regex?: { readonly pattern: string; readonly flags: string };
        readonly callee?: { readonly name?: string };
      };
      if (regex !== undefined) found.push({ file, pattern: new RegExp(regex.pattern, regex.flags) });
      else if (type === 'NewExpression' && callee?.name === 'RegExp') found.push({ file, pattern: null });
    });
    return found;
  });
}

function visit(node: unknown, take: (node: Node) => void): void {
  if (typeof node !== 'object' || node === null) return;
  if ('type' in node) take(node as Node);
  for (const child of Object.values(node)) visit(child, take);
}

const expressions = findExpressions();

/** The literal texts of an expression: what an input must contain to match far. */
function findTokens({ source }: RegExp): string[] {
  const plain = source.replaceAll(/\\[dDwWsSbBpPu](?:\{[^}]*\})?/g, ' ').replaceAll(/\\(.)/g, '$1');
  const words = plain.match(/[\w:/.@=<&%-]+/g) ?? [];
  return [...new Set([...words, ...words.map((word) => `${word} `)])].slice(0, 8);
}

test('every expression that is built from parts is tested by a reader, or matches no outside text', (t) => {
  const built = new Set(expressions.filter(({ pattern }) => pattern === null).map(({ file }) => file));
  t.deepEqual([...built].toSorted(), Object.keys(builtExpressions).toSorted());
});

test('the time to match any expression of the product grows no faster than the text', async (t) => {
  t.timeout(1_000_000);
  t.true(expressions.length > 150);
  const slow: string[] = [];
  const patterns = new Map(
    expressions.flatMap(({ file, pattern }) =>
      pattern === null ? [] : [[String(pattern), { file, pattern }] as const],
    ),
  );
  for (const [source, { file, pattern }] of patterns) {
    if (ownTexts[file] !== undefined) continue;
    const all = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
    const [first = ''] = findTokens(pattern);
    const reader = readsText(
      `${file} ${source}`,
      pattern.global ? (text) => text.replaceAll(pattern, '') : (text) => all.test(text),
      { maxSize: 8 * 1024, tokens: findTokens(pattern), frames: [{ head: first }] },
    );
    slow.push(...(await findSlowInputs(reader)));
  }
  t.deepEqual(slow, []);
});
