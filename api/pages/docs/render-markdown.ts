import { marked, type Token, type Tokens } from 'marked';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import type { DocsTexts } from './docs-texts.ts';
import { highlightJson } from './highlight-code.ts';
import { codeLanguageNames, renderCode, renderSamples, type CodeLanguage } from './render-code.ts';

/** Part of a guide below a heading, as text. */
export interface Section {
  /** Of the heading; empty for the part before the first. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

export interface Rendered {
  readonly title: string;
  readonly content: Html;
  readonly sections: readonly Section[];
}

/** The address of the gateway in guides. */
const placeholderOrigin = 'https://gateway.example';

/** Languages of code that the page lets one choose between, by the names that Markdown gives them. */
const sampleLanguages: Readonly<Record<string, CodeLanguage>> = { sh: 'curl', js: 'node', python: 'python' };

/**
 * Renders a guide. Markdown is only split into tokens by the library: all elements are made here, so HTML in it is shown
 * as text.
 * @param origin the gateway's own address, which replaces that in the examples
 */
export function renderMarkdown(source: string, origin: string, texts: DocsTexts): Rendered {
  const withLinks = source.replaceAll(`](${placeholderOrigin}/`, '](/');
  const tokens = marked
    .lexer(withLinks.replaceAll(placeholderOrigin, origin))
    .filter(({ type }) => type !== 'space');
  const title = tokens.find((token): token is Tokens.Heading => token.type === 'heading')?.text ?? '';
  return { title, content: html`${renderBlocks(tokens, texts)}`, sections: listSections(tokens, title) };
}

/** A heading's anchor, as GitHub makes it. */
const toAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

function renderBlocks(tokens: readonly Token[], texts: DocsTexts): Html[] {
  const blocks: Html[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const group = findSamples(tokens, i);
    if (group.length > 1) {
      const samples = group.map(({ language, code }) => [language, code] as const);
      blocks.push(renderSamples(group[0]!.title || texts.request, Object.fromEntries(samples), texts));
      i += group.length - 1;
    } else blocks.push(renderBlock(tokens[i]!, texts));
  }
  return blocks;
}

interface Sample {
  readonly language: CodeLanguage;
  readonly title: string;
  readonly code: string;
}

/** Finds blocks of code that follow one another, each in another of the languages. */
function findSamples(tokens: readonly Token[], start: number): Sample[] {
  const found: Sample[] = [];
  for (let i = start; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (token.type !== 'code') break;
    const { lang = '', text } = token as Tokens.Code;
    const [name = '', ...title] = lang.split(' ');
    const language = sampleLanguages[name];
    if (language === undefined || found.some((sample) => sample.language === language)) break;
    found.push({ language, title: title.join(' '), code: text });
  }
  return found;
}

function renderBlock(token: Token, texts: DocsTexts): Html {
  switch (token.type) {
    case 'heading':
      return renderHeading(token as Tokens.Heading);
    case 'paragraph':
      return html`<p>${renderInline(token.tokens ?? [])}</p> `;
    case 'text':
      return html`${token.tokens === undefined ? String(token['text']) : renderInline(token.tokens)}`;
    case 'code':
      return renderFence(token as Tokens.Code, texts);
    case 'list':
      return renderList(token as Tokens.List, texts);
    case 'table':
      return renderTable(token as Tokens.Table);
    case 'blockquote':
      return html`<blockquote>${renderBlocks(token.tokens ?? [], texts)}</blockquote> `;
    default:
      return html`<p>${token.raw}</p> `;
  }
}

function renderHeading({ depth, text, tokens }: Tokens.Heading): Html {
  const content = renderInline(tokens);
  if (depth === 1) return html`<h1>${content}</h1> `;
  const id = toAnchor(text);
  return depth === 2
    ? html`<h2 id="${id}"><a href="#${id}">${content}</a></h2> `
    : html`<h3 id="${id}"><a href="#${id}">${content}</a></h3> `;
}

function renderFence({ lang = '', text }: Tokens.Code, texts: DocsTexts): Html {
  const [name = '', ...title] = lang.split(' ');
  const isJson = name === 'json';
  const language = sampleLanguages[name];
  const general = language === undefined ? texts.code : codeLanguageNames[language];
  return renderCode(
    title.join(' ') || (isJson ? 'JSON' : general),
    isJson ? highlightJson(text) : text,
    texts,
  );
}

function renderList({ ordered, items }: Tokens.List, texts: DocsTexts): Html {
  const rendered = items.map(({ tokens }) => html`<li>${renderBlocks(tokens, texts)}</li> `);
  return ordered
    ? html`<ol>
        ${rendered}
      </ol> `
    : html`<ul>
        ${rendered}
      </ul> `;
}

function renderTable({ header, rows }: Tokens.Table): Html {
  return html`<div class="table-scroll" tabindex="0">
    <table class="table">
      <thead>
        <tr>
          ${header.map(({ tokens }) => html`<th scope="col">${renderInline(tokens)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (cells) =>
            html`<tr>
              ${cells.map(({ tokens }) => html`<td>${renderInline(tokens)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div> `;
}

function renderInline(tokens: readonly Token[]): Html[] {
  return tokens.map((token) => {
    const inner = (): Html[] => renderInline('tokens' in token ? (token.tokens ?? []) : []);
    switch (token.type) {
      case 'strong':
        return html`<strong>${inner()}</strong>`;
      case 'em':
        return html`<em>${inner()}</em>`;
      case 'codespan':
        return html`<code>${String(token['text'])}</code>`;
      case 'br':
        return html`<br />`;
      case 'link':
        return html`<a href="${rewriteLink(String(token['href']))}">${inner()}</a>`;
      case 'text':
      case 'escape':
        return html`${String(token['text'])}`;
      default:
        return html`${token.raw}`;
    }
  });
}

/** `jobs.md#events` leads to the page of that guide. */
function rewriteLink(href: string): string {
  const guide = /^([\w-]+)\.md(#.*)?$/.exec(href);
  if (guide !== null) return `/docs/${guide[1]}${guide[2] ?? ''}`;
  return /^(?:https:\/\/|mailto:|#|\/(?!\/))/.test(href) ? href : '#';
}

function listSections(tokens: readonly Token[], title: string): Section[] {
  const sections = [{ id: '', title, text: '' }];
  for (const token of tokens) {
    if (token.type === 'heading') {
      const { depth, text } = token as Tokens.Heading;
      if (depth > 1) sections.push({ id: toAnchor(text), title: plain(text), text: '' });
    } else sections.at(-1)!.text += `${plain(token.raw)} `;
  }
  return sections;
}

/** Without the marks of Markdown and the addresses of links. */
const plain = (text: string): string =>
  text
    .replaceAll(/\]\([^)]*\)/g, ' ')
    .replaceAll(/[`*[\]|#]|-{2,}/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
