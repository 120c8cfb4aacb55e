/** Part of a page that needs no escaping: made by `html`, or from a constant in this program. */
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

/** Escapes strings for use in elements and quoted attributes. Does not escape `Html`, and renders null as nothing. */
function toHtml(value: HtmlValue): string {
  if (value === null) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map((piece) => piece.text).join('');
  return String(value).replaceAll(/[&<>"']/g, (character) => entities[character]!);
}

/** The only way to write a page. Escapes every value unless `html` made it. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(parts.reduce((text, part, i) => text + toHtml(values[i - 1] ?? null) + part));
}
