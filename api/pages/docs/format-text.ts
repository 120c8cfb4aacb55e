import { html, type Html } from '../../../shared/platform/runtime/html.ts';

/** Formats a line of a description: names and values in backticks become code. */
export function formatLine(text: string): Html[] {
  return text.split('`').map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

/** Formats a description; empty lines separate paragraphs. */
export function formatText(text: string): Html[] {
  return text.split('\n\n').map((paragraph) => html`<p>${formatLine(paragraph)}</p> `);
}

/** Formats a name or path with break opportunities after slashes, dots and underscores. */
export function formatName(name: string): Html[] {
  return name.split(/(?<=[/._])/).map((part, i) => (i === 0 ? html`${part}` : html`<wbr />${part}`));
}
