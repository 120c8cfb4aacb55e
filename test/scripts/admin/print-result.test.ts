import { PassThrough, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { printResult, type PrintOptions } from '../../../scripts/admin/print-result.ts';

const json: PrintOptions = { json: true, width: 80 };
const table: PrintOptions = { json: false, width: 80 };

async function print(answer: unknown, options: PrintOptions): Promise<string> {
  const out = new PassThrough();
  const printed = text(out);
  await printResult(answer, out, options);
  out.end();
  return await printed;
}

async function* generateRows(rows: number, onRow: (row: number) => void = () => undefined) {
  for (let row = 1; row <= rows; row++) {
    onRow(row);
    yield { row };
  }
}

test('with --json all rows are one array; without it they are tables of a hundred rows', async (t) => {
  for (const rows of [0, 1, 100, 101, 250]) {
    const expected = Array.from({ length: rows }, (_, i) => ({ row: i + 1 }));
    t.deepEqual(JSON.parse(await print(generateRows(rows), json)), expected, String(rows));
  }
  t.is(await print(generateRows(0), table), 'none\n');
  const lines = (await print(generateRows(101), table)).split('\n');
  t.deepEqual(lines.slice(0, 3), ['row', '───', '1']);
  t.deepEqual(lines.slice(101), ['100', '', 'row', '───', '101', '']);
});

test('a table shows the columns that its verb specifies, and JSON shows all of them', async (t) => {
  async function* rows() {
    yield { id: 1, note: 'long', banned: false };
  }
  const columns = ['id', 'banned'];
  t.deepEqual((await print(rows(), { ...table, columns })).split('\n'), [
    'id  banned',
    '──  ──────',
    '1   false',
    '',
  ]);
  t.deepEqual(JSON.parse(await print(rows(), { ...json, columns })), [
    { id: 1, note: 'long', banned: false },
  ]);
});

test('rows are only read as fast as the output is consumed, and no more are read once the output is closed', async (t) => {
  let read = 0;
  const reading = generateRows(1_000_000, (row) => {
    read = row;
  });
  const closesEarly = new Writable({
    highWaterMark: 1,
    write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
  });
  await printResult(reading, closesEarly, json);
  t.true(read < 10_000, `${read} rows were read`);
  t.true((await reading.next()).done, 'reading has stopped');
});

test('control characters in a vendor message do not reach the terminal, but are unchanged in JSON', async (t) => {
  const message = 'no\u001b[2J\u009b31m\u0007 \u202eway\r\nid  9\u2028\u{e0041}';
  const row = { id: 'a', message };
  for (const answer of [row, [row], { nested: { row } }]) {
    for (const options of [json, table]) {
      const printed = await print(answer, options);
      t.notRegex(printed.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      t.false(printed.includes('\nid  9'));
    }
    t.deepEqual(JSON.parse(await print(answer, json)), answer);
  }
});

test('if reading rows fails, the error is thrown, and the JSON array is incomplete', async (t) => {
  const failing = async function* () {
    yield* generateRows(150);
    throw new Error('Redis is away');
  };
  const out = new PassThrough();
  const printed: Buffer[] = [];
  out.on('data', (chunk: Buffer) => printed.push(chunk));
  await t.throwsAsync(printResult(failing(), out, json), { message: 'Redis is away' });
  t.throws(() => JSON.parse(Buffer.concat(printed).toString()));
});
