/** Texts in English and Russian. `{name}` is filled in. */
export interface ReasonText {
  readonly en: string;
  readonly ru: string;
}
type ReasonTexts = Readonly<Record<string, ReasonText>>;

type Names<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
type Values<Name extends string> = { readonly [Key in Name]: string | number };
/** The values of a text, if it has any. */
export type ValuesOf<Text extends ReasonText> = [Names<Text['en']>] extends [never]
  ? []
  : [values: Values<Names<Text['en']>>];

const placeholder = /\{(\w+)\}/;

export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  const parts = text.split(placeholder);
  return parts.map((part, i) => (i % 2 === 0 ? part : String(values[part]))).join('');
}

/** Reads the values back from a filled text; null if it is another one. */
function readValues(template: string, text: string): Record<string, string> | null {
  const parts = template.split(placeholder);
  const first = parts[0]!;
  const last = parts.at(-1)!;
  if (parts.length === 1) return text === first ? {} : null;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last))
    return null;
  const end = text.length - last.length;
  const values: Record<string, string> = {};
  let at = first.length;
  for (let i = 1; i < parts.length; i += 2) {
    const next = i + 2 === parts.length ? end : text.indexOf(parts[i + 1]!, at);
    if (next < at || next > end) return null;
    values[parts[i]!] = text.slice(at, next);
    at = next + parts[i + 1]!.length;
  }
  return values;
}

/** Finds the text that was filled, with its values. Null if it is none of these. */
export function findFilled(
  texts: ReasonTexts,
  filled: string,
): { readonly ru: string; readonly values: Readonly<Record<string, string>> } | null {
  for (const { en, ru } of Object.values(texts)) {
    const values = readValues(en, filled);
    if (values !== null) return { ru, values };
  }
  return null;
}
