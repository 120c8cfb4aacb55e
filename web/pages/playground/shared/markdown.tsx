import type { MarkedToken, Token, Tokens } from 'marked';
import { useMemo } from 'preact/hooks';
import type { ComponentChild } from 'preact';
import { useMessages } from '../../../lib/language.tsx';
import { CodeBlock } from '../../../ui/copy.tsx';
import type en from '../messages.en.ts';
import { lexMarkdown } from './lex-markdown.ts';

/**
 * Shows the Markdown that a model wrote. Only elements that are made here come into the page: HTML is shown as text, an
 * image as a link, and a link leads only to another page or a mail.
 */
export function Markdown({ text }: { readonly text: string }) {
  const blocks = useMemo(() => lexMarkdown(text), [text]);
  return blocks === null ? (
    <p class="playground-plain">{text}</p>
  ) : (
    <div class="playground-markdown">
      <Blocks tokens={blocks} />
    </div>
  );
}

const Blocks = ({ tokens }: { readonly tokens: readonly Token[] }) => (
  <>
    {tokens.map((token, i) => (
      <Block key={i} token={token as MarkedToken} />
    ))}
  </>
);

function Block({ token }: { readonly token: MarkedToken }) {
  switch (token.type) {
    case 'heading':
      return <Heading token={token} />;
    case 'paragraph':
      return <p>{writeInline(token.tokens)}</p>;
    case 'text':
      return <>{token.tokens === undefined ? decodeEntities(token.text) : writeInline(token.tokens)}</>;
    case 'code':
      return <Code token={token} />;
    case 'blockquote':
      return (
        <blockquote>
          <Blocks tokens={token.tokens} />
        </blockquote>
      );
    case 'list':
      return <List token={token} />;
    case 'table':
      return <DataTable token={token} />;
    case 'hr':
      return <hr />;
    case 'space':
    case 'def':
    case 'checkbox':
      return null;
    default:
      return <p class="playground-plain">{token.raw}</p>;
  }
}

/** Headings of an answer are below those of the page. */
function Heading({ token: { depth, tokens } }: { readonly token: Tokens.Heading }) {
  const Tag = depth <= 2 ? 'h4' : depth === 3 ? 'h5' : 'h6';
  return <Tag>{writeInline(tokens)}</Tag>;
}

function Code({ token: { text, lang } }: { readonly token: Tokens.Code }) {
  const t = useMessages<typeof en>();
  const language = lang?.split(/\s/, 1)[0];
  return <CodeBlock title={language === undefined || language === '' ? t('code') : language} code={text} />;
}

function List({ token: { ordered, start, items } }: { readonly token: Tokens.List }) {
  const entries = items.map((item, i) => (
    <li key={i} class={item.task ? 'task' : undefined}>
      {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-hidden="true" />}
      <Blocks tokens={item.tokens} />
    </li>
  ));
  return ordered ? <ol start={start === '' ? 1 : start}>{entries}</ol> : <ul>{entries}</ul>;
}

function DataTable({ token: { header, rows } }: { readonly token: Tokens.Table }) {
  const t = useMessages<typeof en>();
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={t('table')}>
      <table class="table">
        <thead>
          <tr>
            {header.map((cell, i) => (
              <th key={i} scope="col">
                {writeInline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, i) => (
            <tr key={i}>
              {cells.map((cell, k) => (
                <td key={k}>{writeInline(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const writeInline = (tokens: readonly Token[]): ComponentChild[] =>
  tokens.map((token, i) => <Inline key={i} token={token as MarkedToken} />);

function Inline({ token }: { readonly token: MarkedToken }) {
  switch (token.type) {
    case 'strong':
      return <strong>{writeInline(token.tokens)}</strong>;
    case 'em':
      return <em>{writeInline(token.tokens)}</em>;
    case 'del':
      return <del>{writeInline(token.tokens)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'link':
      return <SafeLink href={token.href}>{writeInline(token.tokens)}</SafeLink>;
    case 'image':
      return <SafeLink href={token.href}>{token.text === '' ? token.href : token.text}</SafeLink>;
    case 'escape':
      return <>{token.text}</>;
    case 'text':
      return <>{token.tokens === undefined ? decodeEntities(token.text) : writeInline(token.tokens)}</>;
    default:
      return isLineBreak(token.raw) ? <br /> : <>{token.raw}</>;
  }
}

const isLineBreak = (html: string): boolean => /^<br ?\/?>$/i.test(html);

const safeSchemes = ['https:', 'http:', 'mailto:'];

function SafeLink({ href, children }: { readonly href: string; readonly children: ComponentChild }) {
  const isSafe = URL.canParse(href) && safeSchemes.includes(new URL(href).protocol);
  if (!isSafe) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

const namedEntities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00A0',
};
const maxCodePoint = 0x10_ff_ff;

const decodeEntities = (text: string): string =>
  text.replaceAll(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,5}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return namedEntities[String(name)] ?? whole;
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
    return code > 0 && code <= maxCodePoint ? String.fromCodePoint(code) : whole;
  });
