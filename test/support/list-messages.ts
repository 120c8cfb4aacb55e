import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, type Node } from 'acorn';

/** Who reads a message. */
export type Audience = 'callers' | 'callers, in Russian' | 'readers of the API description' | 'operators';

/** A text that can leave the product. Each value that is filled in shows as `…`. */
export interface Message {
  readonly file: string;
  readonly audience: Audience;
  readonly text: string;
}

/** Programs whose output nobody reads but developers. */
const developersOnly = /^scripts\/(?:bench|vendor-simulator)\//;
/** Three words, so that names and settings are left out. */
const isSentence = (text: string): boolean =>
  /\p{L}{2,}[\p{L}\p{P}…]*(?:\s+[\p{L}\p{P}…\d]+){2,}/u.test(text);
const russian = /\p{Script=Cyrillic}/u;
const logLevels = new Set(['debug', 'info', 'warn', 'error', 'fatal', 'trace']);

/**
 * Lists all sentences in the compiled product, in the order of their files.
 * @param dist the folder of the compiled project
 */
export function listMessages(dist: string): readonly Message[] {
  return ['api', 'shared', 'workers', 'scripts'].flatMap((folder) =>
    readdirSync(join(dist, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.js'))
      .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
      .filter((file) => !developersOnly.test(file))
      .toSorted()
      .flatMap((file) => listOfFile(dist, file)),
  );
}

function listOfFile(dist: string, file: string): Message[] {
  const code = readFileSync(join(dist, file), 'utf8');
  const found: Message[] = [];
  const source = file.replace(/\.js$/, '.ts');
  visit(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), [], (text, path) => {
    const words = text.replaceAll(/\s+/g, ' ').trim();
    if (!isSentence(words)) return;
    found.push({ file: source, audience: findAudience(source, words, path), text: words });
  });
  return found;
}

function findAudience(file: string, text: string, path: readonly string[]): Audience {
  if (russian.test(text)) return 'callers, in Russian';
  if (path.includes('description') || path.includes('summary')) return 'readers of the API description';
  const isForOperators = file.startsWith('scripts/') || path.some((name) => logLevels.has(name));
  return isForOperators ? 'operators' : 'callers';
}

type AnyNode = Node & Readonly<Record<string, unknown>>;

/** Calls `take` with each text, and the names of the properties and functions that it is in. */
function visit(
  node: Node,
  path: readonly string[],
  take: (text: string, path: readonly string[]) => void,
): void {
  const text = readText(node as AnyNode);
  if (text !== null) {
    take(text, path);
    return;
  }
  const name = nameOf(node as AnyNode);
  const below = name === null ? path : [...path, name];
  for (const value of Object.values(node)) {
    const children = (Array.isArray(value) ? value : [value]) as readonly unknown[];
    for (const child of children) if (isNode(child)) visit(child, below, take);
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';

/** Reads a literal, a template or a concatenation of them. */
function readText(node: AnyNode): string | null {
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? node['value'] : null;
  if (node.type === 'TemplateLiteral') {
    const quasis = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[];
    return quasis.map(({ value }) => value.cooked).join('…');
  }
  if (node.type !== 'BinaryExpression' || node['operator'] !== '+') return null;
  const [left, right] = [readText(node['left'] as AnyNode), readText(node['right'] as AnyNode)];
  if (left === null && right === null) return null;
  return `${left ?? '…'}${right ?? '…'}`;
}

/** The name of a property, or of the function that is called. */
function nameOf(node: AnyNode): string | null {
  const named =
    node.type === 'CallExpression' ? node['callee'] : node.type === 'Property' ? node['key'] : null;
  if (!isNode(named)) return null;
  const { name, property } = named as AnyNode & {
    readonly name?: string;
    readonly property?: { name?: string };
  };
  return name ?? property?.name ?? null;
}
