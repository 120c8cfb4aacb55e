import test from 'ava';
import fc from 'fast-check';
import { formatName, formatText } from '../../../../api/pages/docs/format-text.ts';
import { highlightJson } from '../../../../api/pages/docs/highlight-code.ts';
import { html, type Html } from '../../../../shared/platform/runtime/html.ts';

const textOf = (pieces: readonly Html[]): string => pieces.map((piece) => piece.text).join('');

/** The text that a browser shows for this markup: tags removed, entities resolved. */
function readBack(markup: string): string {
  return markup
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}

const hostile = fc.oneof(
  fc.string(),
  fc.constantFrom(
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    `' onmouseover='x`,
    '&lt;',
    '</pre>',
  ),
);

test('text is escaped, so that it cannot open a tag, close an attribute or form an entity', (t) => {
  fc.assert(
    fc.property(hostile, (text) => {
      const { text: markup } = html`<p title="${text}">${text}</p>`;
      const [, title, content] = /^<p title="([^"<>]*)">([^<>]*)<\/p>$/s.exec(markup) ?? [];
      return title !== undefined && readBack(title) === text && readBack(content!) === text;
    }),
  );
  t.pass();
});

test('markup is inserted unchanged, lists are joined, and null renders nothing', (t) => {
  const piece = html`<b>${'<'}</b>`;
  t.is(html`${piece}${[piece, piece]}${null}${0}`.text, '<b>&lt;</b><b>&lt;</b><b>&lt;</b>0');
});

test('text in backticks is code, blank lines separate paragraphs, and everything else is plain text', (t) => {
  t.is(
    textOf(formatText('a `<b>` c\n\nd')).replaceAll(/> /g, '>'),
    '<p>a <code>&lt;b&gt;</code>c</p><p>d</p>',
  );
});

test('a name gets optional line breaks at its separators, and its text is unchanged', (t) => {
  t.is(textOf(formatName('/a_b/{c}')), '/<wbr />a_<wbr />b/<wbr />{c}');
  fc.assert(fc.property(hostile, (name) => readBack(textOf(formatName(name))) === name));
});

test('highlighting does not change any character of the code', (t) => {
  fc.assert(
    fc.property(fc.oneof(hostile, fc.json()), (text) => readBack(textOf(highlightJson(text))) === text),
  );
  t.is(
    textOf(highlightJson('{"a": "b", "c": -1.5}')),
    '{<span class="key">&quot;a&quot;</span>: <span class="text">&quot;b&quot;</span>, ' +
      '<span class="key">&quot;c&quot;</span>: <span class="value">-1.5</span>}',
  );
});
