/** A piece of a page, safe as it stands: made by `html`, or of a text that this program has by heart. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type HtmlValue = Html | string | number | readonly Html[] | null;

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Texts become text, in elements and in quoted attributes alike; pieces stay as they are; null is nothing. */
function toHtml(value: HtmlValue): string {
  if (value === null) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map((piece) => piece.text).join('');
  return String(value).replaceAll(/[&<>"']/g, (character) => entities[character]!);
}

/** The one way to write a page: everything that is filled in is escaped, unless it was written this way itself. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(parts.reduce((text, part, i) => text + toHtml(values[i - 1] ?? null) + part));
}
