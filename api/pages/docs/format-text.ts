import { html, type Html } from '../../../shared/runtime/html.ts';

/** A line of a description: names and values in backticks become code. */
export function formatLine(text: string): Html[] {
  return text.split('`').map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

/** A description: paragraphs are parted by empty lines. */
export function formatText(text: string): Html[] {
  return text.split('\n\n').map((paragraph) => html`<p>${formatLine(paragraph)}</p> `);
}

/** A name or path, which may break after a slash, a dot or an underscore, and elsewhere only where it must. */
export function formatName(name: string): Html[] {
  return name.split(/(?<=[/._])/).map((part, i) => (i === 0 ? html`${part}` : html`<wbr />${part}`));
}
