import test from 'ava';
import { createChatCompletion } from '../../../shared/contract/chat.ts';
import { parseLine, readCustomId } from '../../../workers/batches/parse-line.ts';

const lineOf = (text: string) => {
  const bytes = Buffer.from(text);
  return { index: 0, start: 0, byteLength: bytes.length, bytes };
};
const parse = async (text: string) => await parseLine(lineOf(text), '/v1/chat/completions', 'account');

/** Longer than what is parsed in one go. */
const filler = 'x'.repeat(70_000);

test('a line has its id and its body, whatever its size', async (t) => {
  for (const content of ['short', filler]) {
    const body = { model: 'a', messages: [{ role: 'user', content }] };
    const text = JSON.stringify({ body, custom_id: 'one', more: { custom_id: 'two' } });
    t.deepEqual(await parse(text), { customId: 'one', body, error: null });
    t.is(await readCustomId(lineOf(text), 'account'), 'one');
  }
});

test('a line whose body is nested too deep, or has too many values, fails as its request would, with its id', async (t) => {
  const deep = `${'['.repeat(6_000)}${']'.repeat(6_000)}`;
  const many = JSON.stringify(Array.from({ length: 300_000 }, () => [1]));
  for (const [value, message] of [
    [deep, /nested more than 100 levels/],
    [many, /more than 200000 values/],
  ] as const) {
    const { customId, error } = await parse(
      `{"body":{"a":"${filler}","messages":${value}},"custom_id":"one"}`,
    );
    t.is(customId, 'one');
    t.is(error?.code, 'validation_failed');
    t.regex(error?.issues?.[0]?.msg ?? error?.message ?? '', message);
  }
});

test('a body may have as many bytes as that of a single request, and no more', async (t) => {
  const { bodyLimitBytes } = createChatCompletion;
  const bodyOf = (bytes: number): string => `{"a":"${'x'.repeat(bytes - 8)}"}`;
  const around = [
    (body: string) => `{"custom_id":"one","method":"POST","url":"/v1/chat/completions","body":${body}}`,
    (body: string) => `{"custom_id":"one","body":${body}}`,
  ];
  for (const write of around) {
    t.is((await parse(write(bodyOf(bodyLimitBytes)))).error, null);
    const { customId, error } = await parse(write(bodyOf(bodyLimitBytes + 1)));
    t.deepEqual([customId, error?.code], ['one', 'payload_too_large']);
  }
});

test('what should have been found at the upload fails the line and not its worker', async (t) => {
  for (const text of [
    '{"custom_id":"one","body":',
    `{"custom_id":"one","body":"${filler}`,
    '{"body":{}}',
    '[]',
  ]) {
    const { customId, error } = await parse(text);
    t.is(error?.code, 'validation_failed');
    t.is(customId, text.includes('custom_id') ? 'one' : '');
  }
});
