/** How a language writes values. */
export interface Notation {
  readonly indent: string;
  readonly writeString: (text: string) => string;
  readonly writeKey: (name: string) => string;
  readonly constants: Readonly<Record<'true' | 'false' | 'null', string>>;
}

const maxInlineLength = 60;

export const jsNotation: Notation = {
  indent: '  ',
  writeString: (text) =>
    `'${JSON.stringify(text)
      .slice(1, -1)
      .replaceAll(String.raw`\"`, '"')
      .replaceAll("'", String.raw`\'`)}'`,
  writeKey: (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : jsNotation.writeString(name)),
  constants: { true: 'true', false: 'false', null: 'null' },
};

export const pythonNotation: Notation = {
  indent: '    ',
  // A string of JSON is one of Python, too.
  writeString: (text) => JSON.stringify(text),
  writeKey: (name) => JSON.stringify(name),
  constants: { true: 'True', false: 'False', null: 'None' },
};

/**
 * Writes a JSON value in a language. Short lists and objects take one line.
 * @param depth how far the line that it begins on is indented
 */
export function writeLiteral(value: unknown, notation: Notation, depth = 0): string {
  if (typeof value === 'string') return notation.writeString(value);
  if (typeof value !== 'object' || value === null)
    return notation.constants[String(value) as 'true'] ?? String(value);
  const isList = Array.isArray(value);
  const items: string[] = isList
    ? value.map((one) => writeLiteral(one, notation, depth + 1))
    : Object.entries(value).map(
        ([name, one]) => `${notation.writeKey(name)}: ${writeLiteral(one, notation, depth + 1)}`,
      );
  const [open, close] = isList ? '[]' : '{}';
  const gap = isList || notation === pythonNotation || items.length === 0 ? '' : ' ';
  if (fitInLine(items)) return `${open}${gap}${items.join(', ')}${gap}${close}`;
  const indent = notation.indent.repeat(depth + 1);
  const lines = items.map((line) => `${indent}${line},\n`);
  return `${open}\n${lines.join('')}${notation.indent.repeat(depth)}${close}`;
}

function fitInLine(items: readonly string[]): boolean {
  const length = items.reduce((sum, item) => sum + item.length + 2, -2);
  return length <= maxInlineLength && !items.some((item) => item.includes('\n'));
}
