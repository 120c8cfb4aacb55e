import test from 'ava';
import { ChatRequest } from '../../../shared/contract/chat.ts';
import { EmbeddingRequest } from '../../../shared/contract/embeddings.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { ImageRequest } from '../../../shared/contract/image-request.ts';
import { isImageUrl } from '../../../shared/contract/image-url.ts';
import { compileValidator } from '../../../shared/contract/validation.ts';
import { AccountChange } from '../../../api/contract/web-accounts.ts';
import { blankTexts, misleadingCharacters } from '../../support/bounded-values.ts';
import { readThreadMs } from '../../support/thread-clock.ts';

const chat = compileValidator(ChatRequest, 'body');
const embedding = compileValidator(EmbeddingRequest, 'body');

function issuesOf(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof AppError) return error.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
    throw error;
  }
  return [];
}

const user = { role: 'user', content: 'hi' };

test('each error is reported with its location and in words, one line per error', (t) => {
  t.deepEqual(
    issuesOf(() => chat(null)),
    ['body: The body must be a JSON object.'],
  );
  t.deepEqual(
    issuesOf(() => chat({ messages: [user] })),
    ['body.model: is required'],
  );
  t.deepEqual(
    issuesOf(() => chat({ model: 'm', messages: [{ role: 'boss' }] })),
    ['body.messages.0.role: must be one of: user, assistant, system, developer, tool, function'],
  );
  t.deepEqual(
    issuesOf(() => chat({ model: 'm', messages: [{ role: 'user', content: 7 }] })),
    ['body.messages.0.content: must be a string, an array of objects or null'],
  );
  t.deepEqual(
    issuesOf(() =>
      chat({
        model: 'm',
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x/y.png' } }] }],
      }),
    ),
    [
      'body.messages.0.content.0.image_url.url: must be an https URL of at most 2083 characters or a base64 data URI of an image (data:image/…) of at most 20 MB; this is an http URL without TLS',
    ],
  );
  t.deepEqual(
    issuesOf(() => chat({ model: 'm', messages: [user], temperature: 3, stream: 'yes' })),
    ['body.temperature: must be <= 2', 'body.stream: must be a boolean or null'],
  );
});

test('embedding inputs are one text or up to 2048 texts, none of them empty', (t) => {
  t.deepEqual(
    issuesOf(() => embedding({ model: 'm', input: '' })),
    ['body.input: must not be empty'],
  );
  t.deepEqual(
    issuesOf(() => embedding({ model: 'm', input: [] })),
    ['body.input: must not be empty'],
  );
  t.deepEqual(
    issuesOf(() => embedding({ model: 'm', input: ['a', ''] })),
    ['body.input.1: must not be empty'],
  );
  t.deepEqual(
    issuesOf(() => embedding({ model: 'm', input: Array.from({ length: 2_049 }, () => 'a') })),
    ['body.input: must have at most 2048 items'],
  );
  t.deepEqual(
    issuesOf(() => embedding({ model: 'm', input: Array.from({ length: 2_048 }, () => 'a') })),
    [],
  );
});

test('embedding inputs may be token IDs, for one text or for several', (t) => {
  const issues = (input: unknown) => issuesOf(() => embedding({ model: 'm', input }));
  t.deepEqual(issues([9906, 1917]), []);
  t.deepEqual(issues([[9906], [1917, 0]]), []);
  t.deepEqual(issues([[9906], []]), ['body.input.1: must not be empty']);
  const many = Array.from({ length: 2_049 }, () => [1]);
  t.deepEqual(issues(many), ['body.input: must have at most 2048 items']);
});

test('errors in a list of inputs depend on the type of its first item', (t) => {
  const issues = (input: unknown) => issuesOf(() => embedding({ model: 'm', input }));
  t.deepEqual(issues(['a', [5, 6]]), [
    'body.input.1: must be a string: do not mix texts with other values in one array',
  ]);
  t.deepEqual(issues([5, 'a', 6.5]), [
    'body.input.1: must be an integer: do not mix token IDs with other values in one array',
    'body.input.2: must be an integer: do not mix token IDs with other values in one array',
  ]);
  t.deepEqual(issues([0.5]), [
    'body.input.0: must be an integer: do not mix token IDs with other values in one array',
  ]);
  t.deepEqual(issues([[5], 'a', 5]), [
    'body.input.1: must be an array: do not mix arrays of token IDs with other values in one array',
    'body.input.2: must be an array: do not mix arrays of token IDs with other values in one array',
  ]);
  for (const input of [5, null, {}, [{}], [null, 5], [true]]) {
    t.deepEqual(issues(input), [
      'body.input: must be a string, an array of strings, an array of integers or an array of arrays',
    ]);
  }
});

test('the largest request of token IDs is validated without checking each of them', (t) => {
  const requestOf = (length: number) => {
    const tokens = Array.from({ length }, () => 1);
    return { model: 'm', input: Array.from({ length: 2_048 }, () => tokens) };
  };
  const measureMs = (body: object): number => {
    const startedMs = readThreadMs();
    embedding(body);
    return readThreadMs() - startedMs;
  };
  const best = (body: object): number => Math.min(...Array.from({ length: 5 }, () => measureMs(body)));
  best(requestOf(1));
  const [shortMs, longMs] = [best(requestOf(1)), best(requestOf(8_192))];
  t.true(longMs < 3 * shortMs + 20, `${longMs} ms, and ${shortMs} ms for short ones`);
});

test('the allowed values of a field are listed once, without null', (t) => {
  for (const format of ['hex', 5]) {
    t.deepEqual(
      issuesOf(() => embedding({ model: 'm', input: 'a', encoding_format: format })),
      ['body.encoding_format: must be one of: float, base64'],
    );
  }
  t.deepEqual(
    issuesOf(() => chat({ model: 'm', messages: [user], web_search: 'yes' })),
    ['body.web_search: must be one of: true, false, links, no-links'],
  );
});

test('for many errors the response stays short, and for very many it reports only the first', (t) => {
  const faults = (length: number): unknown[] => Array.from({ length }, () => ({ role: 'boss' }));
  t.is(issuesOf(() => chat({ model: 'm', messages: faults(1_000) })).length, 20);
  t.is(issuesOf(() => chat({ model: 'm', messages: faults(10_000) })).length, 1);
  t.throws(() => embedding({ model: 'm', input: ['a', ...Array.from({ length: 1_000 }, () => 7)] }), {
    message: 'input.1: must be a string: do not mix texts with other values in one array (and 999 more)',
  });
});

test('an invalid body with any number of fields is rejected because of its error', (t) => {
  // In an ordinary process 150 000 fields overflowed the stack. Test threads have a larger stack, so this test uses more
  // fields.
  const fields = Object.fromEntries(Array.from({ length: 1_000_000 }, (_, i) => [`k${i}`, 0]));
  t.deepEqual(
    issuesOf(() => chat({ ...fields, model: 7, messages: [user] })),
    ['body.model: must be a string'],
  );
});

test("a message's content may be omitted, null, or an empty list", (t) => {
  const issues = (message: object) => issuesOf(() => chat({ model: 'm', messages: [message] }));
  t.deepEqual(issues({ role: 'assistant' }), []);
  t.deepEqual(issues({ role: 'user', content: [] }), []);
  t.deepEqual(issues({ role: 'tool', content: null }), []);
});

test('defaults are filled in, and unknown fields are kept', (t) => {
  t.like(chat({ model: 'm', messages: [{ role: 'assistant' }], new_field: 1 }), {
    max_tokens: 0,
    stream: false,
    new_field: 1,
    messages: [{ role: 'assistant', content: '' }],
  });
});

test('an image is an https URL within the specified length, or a data URI whose bytes start like an image', (t) => {
  t.true(isImageUrl('https://example.com/a.png'));
  const toUri = (start: string, type = 'image/png'): string =>
    `data:${type};base64,${Buffer.from(start, 'latin1').toString('base64')}`;
  const png = '\x89PNG\r\n\x1a\n';
  for (const start of [
    png,
    '\xff\xd8\xff\xe0',
    'GIF89a',
    'RIFF\x24\0\0\0WEBPVP8 ',
    'BM\x36\x10\0\0\0\0\0\0',
    'II*\0',
    'MM\0*',
    '\0\0\0\x1cftypavif',
    '\0\0\0\x18ftypheic',
  ]) {
    t.true(isImageUrl(toUri(start)), start);
  }
  // A document would be billed by its text, but its tokens would be estimated as for an image.
  for (const type of [
    'application/octet-stream',
    'application/pdf',
    'video/mp4',
    'audio/wav',
    'text/plain',
  ]) {
    t.false(isImageUrl(toUri(png, type)), type);
  }
  for (const start of [
    '',
    'plain words',
    '<svg xmlns="http://www.w3.org/2000/svg">',
    'PK\x03\x04',
    '%PDF-1.7',
    '\n%PDF-1.7',
    `GIF89a${' '.repeat(1_000)}%PDF-1.7`,
    'RIFF\x24\0\0\0WAVEfmt ',
    '\0\0\0\x18ftypmp42',
  ]) {
    t.false(isImageUrl(toUri(start)), start);
  }
  t.false(isImageUrl(`https://example.com/${'a'.repeat(2_083)}`));
  t.false(isImageUrl('http://example.com/a.png'));
  t.false(isImageUrl('https://'));
  t.false(isImageUrl('file:///etc/passwd'));
});

test('base64 of an image is rejected if further content follows behind filler characters, but line breaks are accepted', (t) => {
  const toUri = (base64: string): string => `data:image/gif;base64,${base64}`;
  const gif = Buffer.from('GIF89a').toString('base64');
  const pdf = Buffer.from('%PDF-1.7').toString('base64');
  for (const filler of [' ', '\n', '\r\n', '\t', '-', '=', '\u00a0', '%20', '.']) {
    for (const count of [1, 1_400, 100_000]) {
      t.false(isImageUrl(toUri(gif + filler.repeat(count) + pdf)), JSON.stringify([filler, count]));
    }
  }
  const imageBase64 = Buffer.from(`GIF89a${'\0'.repeat(5_000)}`).toString('base64');
  for (const width of [64, 76]) {
    for (const lineBreak of ['\n', '\r\n']) {
      const lines = imageBase64.match(new RegExp(`.{1,${width}}`, 'g'))!;
      t.true(isImageUrl(toUri(lines.join(lineBreak) + lineBreak)), `lines of ${width}`);
      t.true(isImageUrl(toUri(lines.slice(0, 2).join(lineBreak))));
    }
  }
  t.true(isImageUrl(toUri(imageBase64)));
});

test('lengths are in characters, not in UTF-16 code units', (t) => {
  const image = compileValidator(ImageRequest, 'body');
  t.deepEqual(
    issuesOf(() => image({ model: 'm', prompt: '😀😀😀' })),
    [],
  );
  t.deepEqual(
    issuesOf(() => image({ model: 'm', prompt: '😀😀' })),
    ['body.prompt: must have at least 3 characters: this limit is set by this service, not by the model'],
  );
  const user512 = '😀'.repeat(512);
  t.deepEqual(
    issuesOf(() => embedding({ model: 'm', input: 'a', user: user512 })),
    [],
  );
  t.deepEqual(
    issuesOf(() => embedding({ model: 'm', input: 'a', user: `${user512}a` })),
    ['body.user: must have at most 512 characters'],
  );
});

test('checking that a text is not empty does not read all of it', (t) => {
  const input = Array.from({ length: 2_048 }, () => 'слово '.repeat(5_000));
  const short = input.map(() => 'слово ');
  const measureMs = (texts: readonly string[]): number => {
    const startedMs = readThreadMs();
    embedding({ model: 'm', input: texts });
    return readThreadMs() - startedMs;
  };
  // The shortest of several measurements, because garbage collection may delay some.
  const best = (texts: readonly string[]): number =>
    Math.min(...Array.from({ length: 5 }, () => measureMs(texts)));
  best(short);
  const [shortMs, longMs] = [best(short), best(input)];
  t.true(longMs < 3 * shortMs + 20, `${longMs} ms, and ${shortMs} ms for short ones`);
});

const notPlain =
  'body.label: must be one line of text with at least one visible character and without control characters or characters that change the text direction';

test('a label is one line that is displayed as written: control and direction characters are rejected, in words', (t) => {
  const change = compileValidator(AccountChange, 'body');
  for (const character of misleadingCharacters) {
    t.deepEqual(
      issuesOf(() => change({ label: `Work${character}` })),
      [notPlain],
      JSON.stringify(character),
    );
  }
  for (const label of ['Основной', ' Work ', 'עבודה', 'العمل 7', '👩\u200d💻', '<b>"&\\']) {
    t.deepEqual(
      issuesOf(() => change({ label })),
      [],
      label,
    );
  }
});

test('a label must be visible: white space and invisible characters are rejected, in words', (t) => {
  const change = compileValidator(AccountChange, 'body');
  for (const label of blankTexts) {
    t.deepEqual(
      issuesOf(() => change({ label })),
      [notPlain],
      JSON.stringify(label),
    );
  }
  t.deepEqual(
    issuesOf(() => change({ label: '' })),
    ['body.label: must not be empty'],
    'only the length of an empty label is reported',
  );
});

test('an image that is rejected is told which of the reasons it was', (t) => {
  const png =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
  for (const [url, reason] of [
    [`https://example.com/${'a'.repeat(3_000)}`, 'this URL has 3020 characters'],
    ['https://', 'this URL is not valid'],
    ['http://example.com/a.png', 'this is an http URL without TLS'],
    [png, 'this starts with neither https:// nor data:'],
    [`data:application/pdf;base64,${png}`, 'this data URI does not start with data:image/…;base64,'],
    [`data:image/png,${png}`, 'this data URI does not start with data:image/…;base64,'],
    ['data:image/png;base64,SGVsbG8=', 'this data URI does not contain a base64-encoded image'],
    [`data:image/png;base64,${png.slice(0, 60)}${'A'.repeat(28_000_000)}`, 'this data URI has 21.0 MB'],
  ] as const) {
    const content = [{ type: 'image_url', image_url: { url } }];
    const [issue] = issuesOf(() => chat({ model: 'm', messages: [{ role: 'user', content }] }));
    t.true(issue?.endsWith(`; ${reason}`), `${issue} for ${url.slice(0, 60)}`);
  }
});
