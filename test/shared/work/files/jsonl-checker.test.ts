import test from 'ava';
import { JsonlChecker } from '../../../../shared/work/files/jsonl-checker.ts';
import { LongLine } from '../../../../shared/work/files/long-line.ts';
import { readShortLine } from '../../../../shared/work/files/read-short-line.ts';
import { countTokens, CountingTurn } from '../../../../shared/catalog/count-tokens.ts';
import type { FileVerdict } from '../../../../shared/work/files/file-verdict.ts';

async function check(
  content: string | Buffer,
  { chunkBytes = 64 * 1024, maxLines = 50_000 } = {},
): Promise<FileVerdict> {
  const checker = new JsonlChecker({ maxLines, turn: new CountingTurn() });
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; at += chunkBytes)
    await checker.push(bytes.subarray(at, at + chunkBytes));
  return await checker.end();
}

const line = (id: unknown, fields: object = {}): string =>
  JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/embeddings', body: { input: 'a' }, ...fields });

const codesOf = ({ faults }: FileVerdict) => faults.map(({ code, line }) => [code, line]);

test('a file is valid with any line ends, blank lines, a byte order mark and no last line end, in any chunks', async (t) => {
  const content = `\ufeff${line('ä')}\r\n\n  \t\r\n${line('б')}\n${line('𝄞')}`;
  const verdict = await check(content);
  t.deepEqual(codesOf(verdict), []);
  t.is(verdict.lines, 3);
  t.deepEqual(verdict.urls, [{ url: '/v1/embeddings', line: 1 }]);
  for (const chunkBytes of [1, 2, 3, 7, 64]) t.deepEqual(await check(content, { chunkBytes }), verdict);
});

test('method and url may be missing, and custom_id and url may follow the body', async (t) => {
  const verdict = await check(
    `{"body":{"input":"a"},"custom_id":"1"}\n{"body":{"input":"a"},"url":"/v1/x","custom_id":"2"}\n`,
  );
  t.deepEqual(codesOf(verdict), []);
  t.deepEqual(verdict.urls, [{ url: '/v1/x', line: 2 }]);
});

test('each fault has its code, its line and its field', async (t) => {
  const lines = [
    line('a'),
    '{"custom_id":"b","body":{}',
    '[1]',
    '',
    line('a'),
    line(undefined),
    line(7),
    line('x'.repeat(513)),
    line('c', { method: 'GET' }),
    line('d', { body: 'text' }),
    line('e', { url: 3 }),
    'null',
    line('\ud800'),
  ];
  const { faults, lines: count } = await check(lines.join('\n'));
  t.deepEqual(
    faults.map(({ code, line, param }) => [code, line, param]),
    [
      ['invalid_json_line', 2, null],
      ['invalid_json_line', 3, null],
      ['duplicate_custom_id', 5, 'custom_id'],
      ['missing_custom_id', 6, 'custom_id'],
      ['missing_custom_id', 7, 'custom_id'],
      ['missing_custom_id', 8, 'custom_id'],
      ['invalid_json_line', 9, 'method'],
      ['invalid_json_line', 10, 'body'],
      ['invalid_json_line', 11, 'url'],
      ['invalid_json_line', 12, null],
      ['missing_custom_id', 13, 'custom_id'],
    ],
  );
  t.is(count, 12);
});

test('the first fault of JSON says where it is, and what a line is', async (t) => {
  const { faults } = await check("{'custom_id': 'a', 'body': {}}\n{'custom_id': 'b'}\n");
  t.regex(
    faults[0]!.message,
    /^The line is not valid JSON: Expected property name .*\. Write one object per line, /,
  );
  t.is(faults[1]!.message, 'The line is not valid JSON.');
  const list = await check('[\n{"custom_id": "a", "body": {}},\n{"custom_id": "b", "body": {}}\n]\n');
  t.true(list.faults[0]!.message.includes('Write one object per line'));
});

test('invalid UTF-8 is a fault of its line, also if it is long', async (t) => {
  const bytes = Buffer.from(
    `${line('1')}\n${line('2')}\n${line('3', { body: { input: 'b'.repeat(100_000) } })}\n`,
  );
  const second = bytes.indexOf('"2"') + 1;
  bytes[second] = 0xff;
  bytes[bytes.length - 1_000] = 0xc0;
  t.deepEqual(codesOf(await check(bytes)), [
    ['invalid_json_line', 2],
    ['invalid_json_line', 3],
  ]);
});

test('a zip has faults, as many as are kept, and an empty file has one', async (t) => {
  const zip = Buffer.concat(Array.from({ length: 200 }, () => Buffer.from('504b03040a0000ff', 'hex')));
  const verdict = await check(zip);
  t.is(verdict.faults.length, 50);
  t.deepEqual(new Set(verdict.faults.map(({ code }) => code)), new Set(['invalid_json_line']));
  for (const content of ['', '\n', ' \r\n\t\n', '\ufeff', `${' '.repeat(200_000)}\n`])
    t.deepEqual(codesOf(await check(content)), [['empty_file', null]]);
});

test('a file with more lines than allowed says so once', async (t) => {
  const content = Array.from({ length: 20 }, (_, i) => line(`${i}`)).join('\n');
  t.deepEqual(codesOf(await check(content, { maxLines: 20 })), []);
  const verdict = await check(content, { maxLines: 10 });
  t.deepEqual(codesOf(verdict), [['too_many_tasks', 11]]);
  t.is(verdict.lines, 10);
});

test('fifty thousand ids are told apart', async (t) => {
  const ids = Array.from({ length: 50_000 }, (_, i) => `{"custom_id":"${i}","body":{}}`);
  t.deepEqual(codesOf(await check(ids.join('\n'))), []);
  ids[49_999] = ids[123]!;
  const { faults } = await check(ids.join('\n'));
  t.is(faults.length, 1);
  t.like(faults[0], { code: 'duplicate_custom_id', line: 50_000 });
  t.regex(faults[0]!.message, /^Line 124 /);
});

/** Bodies whose facts must not depend on how a line is read. */
const bodies: readonly unknown[] = [
  { model: 'a', input: 'text with "quotes" and \\ and \u0001 and \ud83d\ude00' },
  { model: 'a', input: ['one', 'two', 'three'], n: 2 },
  { model: 'b', input: [1, 22, 333, 4_444_444], max_tokens: 5 },
  { model: 'b', input: [[1, 2], [3]], dimensions: 1e3 },
  {
    model: 'c',
    max_completion_tokens: 7,
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [{ type: 'text', text: 'Hi' }, { image_url: { url: 'data:image/png;base64,AAAA' } }],
      },
    ],
  },
  {
    model: 'd',
    prompt: 'a cat',
    size: '1024x1024',
    quality: 'high',
    n: 3,
    user: null,
    other: { messages: ['x'] },
  },
  { prompt: ['a', { b: ['c', true, -0.5e-3] }], model: 7, size: {}, n: [] },
];

/** A line of any length, checked in chunks of this size. */
function readLong(text: string, chunkBytes: number): { facts: LongLine['facts']; problem: string | null } {
  const long = new LongLine();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) long.push(bytes.subarray(at, at + chunkBytes));
  return { problem: long.end(), facts: long.facts };
}

/** What both readers must agree on: texts may come in other pieces and in another order. */
function summarize(facts: LongLine['facts']): unknown {
  const { fields = {}, ...values } = facts.body ?? {};
  const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? value : null);
  return {
    id: text(facts.custom_id),
    method: text(facts.method),
    url: text(facts.url),
    hasBody: facts.body ? true : facts.body === null,
    values: ['model', 'size', 'quality', 'n', 'max_tokens', 'max_completion_tokens'].map((name) =>
      text((values as Record<string, unknown>)[name]),
    ),
    fields: Object.entries(fields)
      .map(([name, { texts, tokenIds, elements, isTokenArray }]) => [
        name,
        texts.join('').split('').sort().join(''),
        tokenIds,
        elements,
        isTokenArray,
      ])
      .sort(([one], [other]) => String(one).localeCompare(String(other))),
  };
}

test('a long line has the same facts as a short one, in any chunks', (t) => {
  for (const body of bodies) {
    for (const text of [
      JSON.stringify({ custom_id: 'a\u00e9\n', method: 'POST', url: '/v1/embeddings', body }),
      JSON.stringify(
        { body, url: '/v1/embeddings', custom_id: 5, extra: [{ custom_id: 'no' }, 'body'] },
        null,
        '\t',
      ),
      `{"body": {"messages": ["old"]}, "custom_id": "x", "custom\\u005fid": "y", "body": ${JSON.stringify(body)}}`,
    ]) {
      const expected = summarize(readShortLine(text)!);
      for (const chunkBytes of [1, 2, 5, 1_000]) {
        const { facts, problem } = readLong(text, chunkBytes);
        t.is(problem, null, text);
        t.deepEqual(summarize(facts), expected, text);
      }
    }
  }
});

test('a long line is valid exactly if it is JSON', (t) => {
  const valid = JSON.stringify({
    custom_id: 'a\\"\u2028',
    body: { a: [1, -2.5e7, true, null, {}, []], b: '\ud83d' },
  });
  const candidates = [
    valid,
    '{}',
    '{"a":01}',
    '{"a":1e}',
    '{"a":"\\x"}',
    '{"a":"\\u12g4"}',
    '{"a":"\t"}',
    '{"a":1,}',
  ];
  // Without one character, and with one twice.
  for (let at = 0; at < valid.length; at += 1) {
    candidates.push(valid.slice(0, at) + valid.slice(at + 1));
    candidates.push(valid.slice(0, at) + valid.slice(at, at + 1) + valid.slice(at));
  }
  for (const text of candidates) {
    let isValid = true;
    try {
      isValid = readShortLine(text) !== null;
    } catch {
      isValid = false;
    }
    for (const chunkBytes of [1, 3, 1_000]) t.is(readLong(text, chunkBytes).problem === null, isValid, text);
  }
  t.is(readLong('[{"custom_id":"a"}]', 5).problem, 'The line is not a JSON object.');
  t.is(readLong(`{"a":${'['.repeat(20_000)}`, 999).problem, 'The line is nested too deep.');
});

test('a line of many megabytes is checked as it arrives', async (t) => {
  const text = 'The quick brown fox. '.repeat(1_000);
  const checker = new JsonlChecker({ maxLines: 10, turn: new CountingTurn() });
  await checker.push(Buffer.from('{"body":{"model":"m","messages":[{"content":"'));
  const chunk = Buffer.from(text);
  for (let i = 0; i < 500; i++) await checker.push(chunk);
  await checker.push(Buffer.from('"}]},"custom_id":"late"}'));
  const verdict = await checker.end();
  t.deepEqual(codesOf(verdict), []);
  t.is(verdict.groups[0]!.characters, 500 * text.length);
});

test('groups have what a cost estimate needs', async (t) => {
  const lines = [
    line('1', { body: { model: 'e', input: ['one', 'two words'] } }),
    line('2', { body: { model: 'e', input: [5, 6, 7] } }),
    line('3', { body: { model: 'c', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10, n: 2 } }),
    line('4', { body: { model: 'c', messages: [{ role: 'user', content: 'data:text/plain,no' }] } }),
    line('5', { body: { model: 'i', prompt: 'a cat', size: '512x512', quality: 'low', n: 4 } }),
  ];
  const { groups, other } = await check(lines.join('\n'));
  const base = { size: null, quality: null };
  t.deepEqual(groups, [
    {
      ...base,
      model: 'e',
      lines: 2,
      characters: 12,
      tokens: countTokens('one') + countTokens('two words') + 3,
      inputs: 3,
      messages: 0,
      choices: 2,
      limitedTokens: 0,
      unlimitedChoices: 2,
    },
    {
      ...base,
      model: 'c',
      lines: 2,
      characters: 13,
      tokens: 2 * countTokens('user') + countTokens('Hello'),
      inputs: 2,
      messages: 2,
      choices: 3,
      limitedTokens: 20,
      unlimitedChoices: 1,
    },
    {
      model: 'i',
      size: '512x512',
      quality: 'low',
      lines: 1,
      characters: 5,
      tokens: countTokens('a cat'),
      inputs: 1,
      messages: 0,
      choices: 4,
      limitedTokens: 0,
      unlimitedChoices: 4,
    },
  ]);
  t.is(other, null);
});

test('beyond two megabytes tokens are in proportion to characters, and beyond a hundred groups lines are summed up', async (t) => {
  const words = 'some words of a text '.repeat(1_000);
  const lines = Array.from({ length: 150 }, (_, i) =>
    line(`${i}`, { body: { model: `m${i % 120}`, input: words } }),
  );
  const { groups, other } = await check(lines.join('\n'));
  t.is(groups.length, 100);
  t.is(other?.lines, 20);
  const exact = countTokens(words);
  for (const group of [...groups, other!])
    t.true(Math.abs(group.tokens / group.lines / exact - 1) < 0.01, `${group.tokens}`);
  t.true(JSON.stringify({ groups, other }).length < 25_000);
});
